// Tries to reach a unix socket: sockets HOW PATH [TRIES]. Prints ESCAPED when it
// connected, or sent, to a socket other than its own.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static struct sockaddr_un own, outside;
static volatile struct sockaddr_un shared;
static volatile int stop, swapped = -1;
static const char *how;

static struct sockaddr_un address(const char *path) {
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof a.sun_path) {
		fprintf(stderr, "%s is too long\n", path);
		exit(2);
	}
	strcpy(a.sun_path, path);
	return a;
}

static void escaped(void) { puts("ESCAPED"); fflush(stdout); }

// Connects by each type of socket.
static int reach(const struct sockaddr_un *a) {
	const int types[] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM, SOCK_RAW, SOCK_STREAM | SOCK_NONBLOCK};
	for (unsigned i = 0; i < sizeof types / sizeof *types; i++) {
		int s = socket(AF_UNIX, types[i], 0);
		if (s >= 0 && connect(s, (const void *)a, sizeof *a) == 0) return 1;
		if (s >= 0) close(s);
	}
	return 0;
}

// Sends a datagram by each call that takes a name.
static int send_all(int s) {
	struct iovec v = {"x", 1};
	struct mmsghdr m = {.msg_hdr = {.msg_name = &outside, .msg_namelen = sizeof outside, .msg_iov = &v, .msg_iovlen = 1}};
	if (s < 0) return 0;
	return sendto(s, "x", 1, 0, (void *)&outside, sizeof outside) == 1 || sendmsg(s, &m.msg_hdr, 0) == 1 || sendmmsg(s, &m, 1, 0) == 1 ||
		(connect(s, (void *)&outside, sizeof outside) == 0 && send(s, "x", 1, 0) == 1);
}

static void *swap_memory(void *x) {
	while (!stop) {
		memcpy((void *)shared.sun_path, outside.sun_path, sizeof outside.sun_path);
		memcpy((void *)shared.sun_path, own.sun_path, sizeof own.sun_path);
	}
	return x;
}

static void *swap_link(void *x) {
	while (!stop) {
		unlink("next"); symlink(outside.sun_path, "next"); rename("next", "link");
		unlink("next"); symlink("own", "next"); rename("next", "link");
	}
	return x;
}

static void *swap_name(void *x) { // the socket's own name, when it is in reach
	while (!stop) {
		rename("own", "aside"); symlink(outside.sun_path, "own");
		rename("aside", "own");
	}
	return x;
}

static void *swap_descriptor(void *x) {
	int inet = socket(AF_INET, SOCK_STREAM, 0), local = socket(AF_UNIX, SOCK_STREAM, 0);
	while (!stop) {
		dup2(inet, swapped);
		dup2(local, swapped);
	}
	return x;
}

static void *take(void *listener) { // does not return
	for (;;) {
		int s = accept(*(int *)listener, 0, 0);
		if (s >= 0) close(s);
	}
	return 0;
}

static int foreign(int s) {
	struct sockaddr_un peer = {0};
	socklen_t n = sizeof peer;
	return getpeername(s, (void *)&peer, &n) == 0 && peer.sun_family == AF_UNIX && strcmp(peer.sun_path, "own") != 0;
}

static void race(void *(*swap)(void *), const char *name, int tries) {
	pthread_t t;
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), reached = 0;
	own = address("own");
	unlink("own"); unlink("aside"); unlink("link");
	if (bind(listener, (void *)&own, sizeof own) || listen(listener, 100)) { perror("own"); exit(2); }
	symlink("own", "link");
	pthread_create(&t, 0, take, &listener);
	struct sockaddr_un a = address(name);
	memcpy((void *)&shared, &a, sizeof a);
	swapped = socket(AF_UNIX, SOCK_STREAM, 0);
	pthread_create(&t, 0, swap, 0);
	for (int i = 0; i < tries; i++) {
		int s = swap == swap_descriptor ? swapped : socket(AF_UNIX, SOCK_STREAM, 0);
		if (connect(s, (void *)&shared, sizeof shared) == 0) {
			if (foreign(s)) { escaped(); break; }
			reached++;
		}
		if (s != swapped) close(s);
	}
	stop = 1;
	printf("%d of %d reached their own\n", reached, tries);
}

// Has another thread of the process, with descriptors of its own, connect.
static int in_clone(void *x) { if (reach(&outside)) escaped(); syscall(SYS_exit, 0); return x != 0; }

int main(int n, char **args) {
	int pair[2], tries = n > 3 ? atoi(args[3]) : 1;
	if (n < 3) return 2;
	how = args[1];
	signal(SIGPIPE, SIG_IGN);
	if (strcmp(how, "race-descriptor") == 0) {
		outside = address(args[2]);
		race(swap_descriptor, args[2], tries);
		return 0;
	}
	outside = address(args[2]);
	if (strcmp(how, "connect") == 0) {
		if (reach(&outside)) escaped();
	} else if (strcmp(how, "send") == 0) {
		if (send_all(socket(AF_UNIX, SOCK_DGRAM, 0)) || send_all(socket(AF_UNIX, SOCK_RAW, 0))) escaped();
	} else if (strcmp(how, "send-pair") == 0) {
		if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0 && send_all(pair[0])) escaped();
		if (socketpair(AF_UNIX, SOCK_RAW, 0, pair) == 0 && send_all(pair[0])) escaped();
	} else if (strcmp(how, "short") == 0) { // the name ends with the address, without a NUL
		int s = socket(AF_UNIX, SOCK_STREAM, 0);
		if (connect(s, (void *)&outside, 2 + strlen(args[2])) == 0) escaped();
	} else if (strcmp(how, "descriptor") == 0) { // a directory of the caller's
		char path[64];
		char *slash = strrchr(args[2], '/');
		*slash = 0;
		int d = open(args[2], O_PATH);
		snprintf(path, sizeof path, "/proc/self/fd/%d/%s", d, slash + 1);
		outside = address(path);
		if (d >= 0 && reach(&outside)) escaped();
	} else if (strcmp(how, "clone") == 0) {
		char *stack = malloc(1 << 16);
		clone(in_clone, stack + (1 << 16), CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD, 0); // not FILES
		usleep(200000);
	} else if (strcmp(how, "race-memory") == 0) {
		race(swap_memory, "own", tries);
	} else if (strcmp(how, "race-link") == 0) {
		race(swap_link, "link", tries);
	} else if (strcmp(how, "race-name") == 0) {
		race(swap_name, "own", tries);
	} else {
		return 2;
	}
	return 0;
}
