/* A server whose calls are timed by the processor time that they took, not by the clock of the wall, which goes on while something else
 * has the processor. To be preloaded: gettimeofday() is the wall's at each turn of the event loop, and runs by the thread's own time
 * until the next one. Built and used by plans.py --own-time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <time.h>

static __thread long long wall_us, own_us; /* at the last turn; 0 in threads without an event loop */

static long long microseconds(clockid_t clock) {
  struct timespec at;
  clock_gettime(clock, &at);
  return at.tv_sec * 1000000LL + at.tv_nsec / 1000;
}

int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout) {
  static int (*real)(int, struct epoll_event *, int, int);
  if (!real) real = (int (*)(int, struct epoll_event *, int, int))dlsym(RTLD_NEXT, "epoll_wait");
  int found = real(epoll, events, most, timeout);
  wall_us = microseconds(CLOCK_REALTIME);
  own_us = microseconds(CLOCK_THREAD_CPUTIME_ID);
  return found;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  long long us = wall_us ? wall_us + microseconds(CLOCK_THREAD_CPUTIME_ID) - own_us : microseconds(CLOCK_REALTIME);
  now->tv_sec = us / 1000000;
  now->tv_usec = us % 1000000;
  return 0;
}
