/* Valgrind 3.19 runs a program inside its own executable, so the kernel's /proc/self/exe is valgrind. The agent starts its guardian
   through that link. This library, loaded into the agent, replaces the link with the path in PINION_COUNTED. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *own_program(const char *file) {
    const char *counted = getenv("PINION_COUNTED");
    return counted && strcmp(file, "/proc/self/exe") == 0 ? counted : file;
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                 char *const argv[], char *const envp[]) {
    int (*next)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[], char *const[]) =
        dlsym(RTLD_NEXT, "posix_spawnp");
    return next(pid, own_program(file), actions, attributes, argv, envp);
}

int execvp(const char *file, char *const argv[]) {
    int (*next)(const char *, char *const[]) = dlsym(RTLD_NEXT, "execvp");
    return next(own_program(file), argv);
}
