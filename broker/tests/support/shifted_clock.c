/* Preloaded: the clock of the wall goes wrong by the seconds that the file named by SHIFTED_CLOCK holds, from the moment
 * it holds them. The clock that never jumps is left alone. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    long result = syscall(SYS_clock_gettime, clock, now);
    const char *path = getenv("SHIFTED_CLOCK");
    if (result != 0 || clock != CLOCK_REALTIME || path == NULL) {
        return (int)result;
    }
    char text[32] = {0};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        if (read(file, text, sizeof text - 1) > 0) {
            now->tv_sec += atol(text);
        }
        close(file);
    }
    return 0;
}
