#define _GNU_SOURCE
/* Asks for distinct URLs over keep-alive connections, each answer checked: status 200 and the length of its body.
   usage: distinct PORT CONNECTIONS SIZE FIRST COUNT REQUESTS
   The URLs are /SIZE/N for N from FIRST on, COUNT of them, in an order in which neighbours lie far apart, again and again until
   REQUESTS are done. Prints: requests, those that were hits (X-Cache-Status: HIT), errors. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { IN = 1 << 18 };

struct connection {
    int fd;
    char in[IN];
    size_t have;
    long left; /* of the body; -1 before the head is complete */
};

static unsigned long size, first, count, requests, begun, done, hits, errors;

static void ask(struct connection *c) {
    if (begun >= requests) return;
    unsigned long n = first + begun++ * 7919 % count;
    char text[256];
    int length = snprintf(text, sizeof text, "GET /%lu/%lu HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", size, n);
    if (write(c->fd, text, (size_t)length) != length) errors++;
    c->have = 0;
    c->left = -1;
}

static void finish(struct connection *c) {
    done++;
    ask(c);
}

static int head(struct connection *c) {
    c->in[c->have] = 0;
    char *end = strstr(c->in, "\r\n\r\n");
    if (!end) return 0;
    *end = 0;
    char *length = strcasestr(c->in, "\r\nContent-Length: ");
    unsigned long announced = length ? strtoul(length + 18, NULL, 10) : 0;
    if (strncmp(c->in, "HTTP/1.1 200", 12) || announced != size) errors++;
    if (strcasestr(c->in, "\r\nX-Cache-Status: HIT")) hits++;
    c->left = (long)announced - (long)(c->have - (size_t)(end + 4 - c->in));
    return 1;
}

static void take(struct connection *c) {
    for (;;) {
        size_t room = c->left < 0 ? IN - 1 - c->have : IN - 1;
        char *into = c->left < 0 ? c->in + c->have : c->in;
        ssize_t n = recv(c->fd, into, room, MSG_DONTWAIT);
        if (n == 0) { fprintf(stderr, "closed\n"); exit(1); }
        if (n < 0) return;
        if (c->left < 0) {
            c->have += (size_t)n;
            if (!head(c)) continue;
        } else {
            c->left -= n;
        }
        if (c->left == 0) finish(c);
    }
}

int main(int argc, char **argv) {
    if (argc != 7) return 2;
    int parallel = atoi(argv[2]), one = 1, poll = epoll_create1(0);
    size = strtoul(argv[3], NULL, 10);
    first = strtoul(argv[4], NULL, 10);
    count = strtoul(argv[5], NULL, 10);
    requests = strtoul(argv[6], NULL, 10);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[1])),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < parallel; i++) {
        struct connection *c = malloc(sizeof *c);
        c->fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(c->fd, (struct sockaddr *)&address, sizeof address)) return 1;
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        epoll_ctl(poll, EPOLL_CTL_ADD, c->fd, &event);
        ask(c);
    }
    struct epoll_event events[256];
    while (done < requests) {
        int ready = epoll_wait(poll, events, 256, 30000);
        if (ready <= 0) { fprintf(stderr, "no answer in 30 s\n"); return 1; }
        for (int i = 0; i < ready; i++) take(events[i].data.ptr);
    }
    printf("%lu %lu %lu\n", done, hits, errors);
    return 0;
}
