#define _GNU_SOURCE
/* An origin that answers GET /SIZE/ANYTHING with SIZE bytes that may be kept for a day, and GET /count with the number of other
   requests so far. Keep-alive, one thread. usage: origin PORT */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS = 65536, HEAD = 4096, BODY = 1 << 20 };

struct connection {
    char in[HEAD];
    size_t have;
    char *out;
    size_t left, at;
};

static struct connection *connections[CONNECTIONS];
static unsigned long asked;

static void answer(struct connection *c) {
    unsigned long size = strtoul(c->in + 5, NULL, 10);
    char head[256], count[32];
    if (size > BODY) size = BODY;
    if (!strncmp(c->in, "GET /count ", 11)) {
        size = (unsigned long)snprintf(count, sizeof count, "%lu", asked);
    } else {
        count[0] = 0;
        asked++;
    }
    int length = snprintf(head, sizeof head,
                          "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: max-age=86400\r\n"
                          "Content-Length: %lu\r\n\r\n", size);
    c->out = malloc((size_t)length + size);
    memcpy(c->out, head, (size_t)length);
    if (count[0]) memcpy(c->out + length, count, size);
    else memset(c->out + length, 'a', size);
    c->left = (size_t)length + size;
    c->at = 0;
}

static void drop(int fd) {
    free(connections[fd]->out);
    free(connections[fd]);
    connections[fd] = NULL;
    close(fd);
}

static void serve(int fd, int poll) {
    struct connection *c = connections[fd];
    for (;;) {
        if (c->left) {
            ssize_t n = write(fd, c->out + c->at, c->left);
            if (n <= 0) {
                struct epoll_event ev = {.events = EPOLLOUT, .data.fd = fd};
                epoll_ctl(poll, EPOLL_CTL_MOD, fd, &ev);
                return;
            }
            c->at += (size_t)n;
            c->left -= (size_t)n;
            if (c->left) continue;
            free(c->out);
            c->out = NULL;
            struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
            epoll_ctl(poll, EPOLL_CTL_MOD, fd, &ev);
        }
        ssize_t n = recv(fd, c->in + c->have, HEAD - 1 - c->have, MSG_DONTWAIT);
        if (n == 0) { drop(fd); return; }
        if (n < 0) return;
        c->have += (size_t)n;
        c->in[c->have] = 0;
        if (!strstr(c->in, "\r\n\r\n")) continue;
        answer(c);
        c->have = 0;
    }
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0), poll = epoll_create1(0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[1])),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4096)) return 1;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[256];
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int count = epoll_wait(poll, events, 256, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd != listener) { serve(fd, poll); continue; }
            fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
            if (fd < 0 || fd >= CONNECTIONS) continue;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            connections[fd] = calloc(1, sizeof(struct connection));
            struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
            epoll_ctl(poll, EPOLL_CTL_ADD, fd, &ev);
        }
    }
}
