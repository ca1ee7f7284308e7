/* The least program that does the same input and output as an agent: it answers `get_state`, sends the conversation to the scripted
 * model (Anthropic Messages), copies each text delta to standard output and runs commands with bash. It has no features and is no agent:
 * it reads only what the scripted model writes. Its times are what the machine, the kernel and bash cost by themselves. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT_OUTPUT 50000
extern char **environ;

struct text { char *at; size_t size, room; };

static void append(struct text *t, const char *from, size_t size) {
    if (t->size + size + 1 > t->room) {
        t->room = (t->size + size + 1) * 2;
        t->at = realloc(t->at, t->room);
        if (!t->at) exit(1);
    }
    memcpy(t->at + t->size, from, size);
    t->size += size;
    t->at[t->size] = 0;
}

static void add(struct text *t, const char *from) { append(t, from, strlen(from)); }

static void add_escaped(struct text *t, const char *from, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (from[i] == '\n') append(t, "\\n", 2);
        else if (from[i] == '"' || from[i] == '\\') { append(t, "\\", 1); append(t, from + i, 1); }
        else append(t, from + i, 1);
    }
}

static void write_all(int to, const char *from, size_t size) {
    while (size) {
        ssize_t n = write(to, from, size);
        if (n <= 0) exit(1);
        from += n;
        size -= (size_t)n;
    }
}

static int connect_to(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (to < 0 || connect(to, (struct sockaddr *)&address, sizeof address)) exit(1);
    setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return to;
}

/* Runs a command and appends the last bytes of its output to `out` as the content of a JSON string. */
static void run_command(const char *command, struct text *out) {
    static char kept[2 * KEPT_OUTPUT + 65536];
    size_t size = 0;
    int ends[2];
    pid_t child;
    if (pipe2(ends, O_CLOEXEC)) exit(1);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    char *argv[] = {"bash", "-c", (char *)command, NULL};
    if (posix_spawnp(&child, "bash", &actions, NULL, argv, environ)) exit(1);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    for (ssize_t n; (n = read(ends[0], kept + size, 65536)) > 0;) {
        size += (size_t)n;
        if (size > 2 * KEPT_OUTPUT) {
            memmove(kept, kept + size - KEPT_OUTPUT, KEPT_OUTPUT);
            size = KEPT_OUTPUT;
        }
    }
    close(ends[0]);
    waitpid(child, NULL, 0);
    size_t skip = size > KEPT_OUTPUT ? size - KEPT_OUTPUT : 0;
    add_escaped(out, kept + skip, size - skip);
}

/* Handles one line of the event stream; returns 1 at the end of the answer. */
static int event(char *line, struct text *call) {
    static const char head[] = "{\"type\":\"message_update\",\"delta\":\"", tail[] = "\"}\n";
    char *at;
    if (strncmp(line, "data: ", 6)) return 0;
    if ((at = strstr(line, "\"type\":\"text_delta\",\"text\":\""))) {
        at += 28;
        char *end = strstr(at, "\"}}");
        struct text out = {0};
        add(&out, head);
        append(&out, at, end ? (size_t)(end - at) : strlen(at));
        add(&out, tail);
        write_all(1, out.at, out.size);
        free(out.at);
    } else if ((at = strstr(line, "\"partial_json\":\""))) {
        at += 16;
        char *end = strstr(at, "\"}}");
        append(call, at, end ? (size_t)(end - at) : strlen(at));
    }
    return strstr(line, "\"type\":\"message_stop\"") != NULL;
}

/* Sends the conversation and reads the answer; the arguments of a call are appended to `call`. */
static void request(int to, struct text *body, struct text *call) {
    static char input[1 << 16];
    static size_t have;
    char head[160];
    int n = snprintf(head, sizeof head, "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: %zu\r\n\r\n", body->size + 2);
    write_all(to, head, (size_t)n);
    write_all(to, body->at, body->size);
    write_all(to, "]}", 2);
    for (int stopped = 0;;) {
        char *line = input, *end;
        while ((end = memchr(line, '\n', have - (size_t)(line - input)))) {
            *end = 0;
            stopped |= event(line, call);
            if (stopped && !strcmp(line, "0\r")) {
                have = 0;
                return;
            }
            line = end + 1;
        }
        have -= (size_t)(line - input);
        memmove(input, line, have);
        ssize_t got = read(to, input + have, sizeof input - have);
        if (got <= 0) exit(1);
        have += (size_t)got;
    }
}

static void prompt(int to) {
    struct text body = {0}, call = {0}, command = {0};
    add(&body, "{\"model\":\"mock\",\"max_tokens\":1000,\"stream\":true,\"tools\":[{\"name\":\"bash\"}],\"messages\":[{\"role\":\"user\",\"content\":\"go\"}");
    for (;;) {
        call.size = command.size = 0;
        request(to, &body, &call);
        char *from = call.size ? strstr(call.at, "\\\"command\\\": \\\"") : NULL, *end = from ? strstr(from + 15, "\\\"") : NULL;
        if (!end) break;
        append(&command, from + 15, (size_t)(end - from - 15));
        add(&body, ",{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"bash\",\"input\":{\"command\":\"");
        add(&body, command.at);
        add(&body, "\"}}]},{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"content\":\"");
        run_command(command.at, &body);
        add(&body, "\"}]}");
    }
    free(body.at), free(call.at), free(command.at);
}

int main(int count, char **arguments) {
    char *line = NULL;
    size_t room = 0;
    int model = -1;
    if (count != 2) return 2;
    while (getline(&line, &room, stdin) > 0) {
        char id[64] = "", out[160];
        char *at = strstr(line, "\"id\": \"");
        if (at) sscanf(at + 7, "%60[^\"]", id);
        int n = snprintf(out, sizeof out, "{\"type\":\"response\",\"id\":\"%s\",\"success\":true}\n", id);
        write_all(1, out, (size_t)n);
        if (strstr(line, "\"prompt\"")) {
            if (model < 0) model = connect_to(atoi(arguments[1]));
            prompt(model);
            write_all(1, "{\"type\":\"agent_end\"}\n", 21);
        }
    }
    return 0;
}
