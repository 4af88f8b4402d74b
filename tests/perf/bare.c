/* The limit of the kernel interface: one epoll thread, one read() and one write() of a fixed answer per request. It knows no
 * HTTP: it counts empty lines. usage: bare PORT BODY_BYTES */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIPELINED = 64, EVENTS = 1024 };

static int listen_on(int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = inet_addr("127.0.0.1")};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (void *)&address, sizeof address) || listen(fd, 4096)) {
        perror("bare: listen");
        exit(1);
    }
    return fd;
}

static void watch(int epoll, int fd, unsigned events) {
    struct epoll_event event = {.events = events, .data.fd = fd};
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static void accept_all(int epoll, int listener) {
    int fd, on = 1;
    while ((fd = accept4(listener, 0, 0, SOCK_NONBLOCK)) >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        watch(epoll, fd, EPOLLIN | EPOLLET | EPOLLRDHUP);
    }
}

static void answer(int fd, const char *answers, size_t length) {
    static char in[65536];
    ssize_t n = read(fd, in, sizeof in);
    if (n <= 0) {
        close(fd);
        return;
    }
    int requests = 0;
    for (char *at = in, *end = in + n; (at = memmem(at, end - at, "\r\n\r\n", 4)); at += 4) requests++;
    while (requests > 0) {
        int now = requests > PIPELINED ? PIPELINED : requests;
        if (write(fd, answers, length * now) < (ssize_t)(length * now)) return;
        requests -= now;
    }
}

int main(int count, char **words) {
    if (count != 3) {
        fprintf(stderr, "usage: bare PORT BODY_BYTES\n");
        return 2;
    }
    int port = atoi(words[1]), body = atoi(words[2]);
    char *one = malloc(body + 1024);
    int length = sprintf(one,
                         "HTTP/1.1 200 OK\r\nServer: bare\r\nDate: Sun, 05 Nov 2017 07:58:02 GMT\r\n"
                         "Content-Type: application/octet-stream\r\nContent-Length: %d\r\n"
                         "Last-Modified: Thu, 26 Oct 2017 08:56:57 GMT\r\nETag: \"59f1a359-c\"\r\nAccept-Ranges: bytes\r\n"
                         "Cache-Control: public, max-age=86400\r\n\r\n",
                         body);
    memset(one + length, 'a', body);
    length += body;
    char *answers = malloc((size_t)length * PIPELINED);
    for (int i = 0; i < PIPELINED; i++) memcpy(answers + (size_t)i * length, one, length);

    int listener = listen_on(port), epoll = epoll_create1(0);
    watch(epoll, listener, EPOLLIN);
    static struct epoll_event events[EVENTS];
    for (;;) {
        int n = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener)
                accept_all(epoll, listener);
            else
                answer(fd, answers, length);
        }
    }
}
