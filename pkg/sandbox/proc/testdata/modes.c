// Gives the file f modes or attributes by the call HOW: modes HOW [TRIES].
// Exits with 0 if the call succeeded.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { modes = 06755, fchmodat2 = 452, setxattrat = 463, file_setattr = 469 };

static volatile int stop;

static void *swap(void *x) {
	while (!stop) {
		rename("d", "e"); rename("f", "d");
		rename("d", "f"); rename("e", "d");
	}
	return x;
}

static int race(int tries) {
	pthread_t t;
	mkdir("d", 0755);
	close(open("f", O_CREAT | O_WRONLY, 0755));
	pthread_create(&t, 0, swap, 0);
	while (tries-- > 0) chmod("d", 02755);
	stop = 1;
	pthread_join(t, 0);
	return 0;
}

int main(int n, char **args) {
	const char *how = n > 1 ? args[1] : "", *name = "f";
	if (access("file", F_OK) == 0) name = "file"; // outside
	if (strcmp(how, "openat") == 0) return openat(open(".", O_PATH), "f", O_CREAT | O_WRONLY, modes) < 0;
	if (strcmp(how, "openat2") == 0) {
		struct { unsigned long flags, mode, resolve; } h = {O_CREAT | O_WRONLY, modes, 0};
		return syscall(437, AT_FDCWD, "f", &h, sizeof h) < 0;
	}
#ifdef SYS_open
	if (strcmp(how, "open") == 0) return syscall(SYS_open, "f", O_CREAT | O_WRONLY, modes) < 0;
	if (strcmp(how, "creat") == 0) return syscall(SYS_creat, "f", modes) < 0;
	if (strcmp(how, "mknod") == 0) return syscall(SYS_mknod, "f", S_IFREG | modes, 0) < 0;
#endif
	if (strcmp(how, "mknodat") == 0) return mknodat(AT_FDCWD, "f", S_IFREG | modes, 0) < 0;
	if (strcmp(how, "tmpfile") == 0) {
		char path[64];
		snprintf(path, sizeof path, "/proc/self/fd/%d", open(".", O_TMPFILE | O_RDWR, modes));
		return linkat(AT_FDCWD, path, AT_FDCWD, "f", AT_SYMLINK_FOLLOW);
	}
	if (strcmp(how, "swap") == 0) return race(atoi(args[2]));
	int f = open(name, O_RDONLY);
	if (f < 0) f = open(name, O_CREAT | O_RDWR, 0755);
	if (strcmp(how, "fchmod") == 0) return fchmod(f, 02755) && fchmod(f, modes);
	if (strcmp(how, "fchmodat2") == 0) return syscall(fchmodat2, AT_FDCWD, "f", 02755, 0) && syscall(fchmodat2, AT_FDCWD, "f", 02755, AT_SYMLINK_NOFOLLOW);
	if (strcmp(how, "fchmodat2-empty") == 0) return syscall(fchmodat2, f, "", 02755, AT_EMPTY_PATH);
	if (strcmp(how, "setxattr") == 0) return setxattr(name, "user.x", "y", 1, 0);
	if (strcmp(how, "lsetxattr") == 0) return lsetxattr(name, "user.x", "y", 1, 0);
	if (strcmp(how, "fsetxattr") == 0) return fsetxattr(f, "user.x", "y", 1, 0);
	if (strcmp(how, "setxattrat") == 0) {
		struct { unsigned long value; unsigned size, flags; } a = {(unsigned long)"y", 1, 0};
		return syscall(setxattrat, AT_FDCWD, name, 0, "user.x", &a, sizeof a) != 0;
	}
	if (strcmp(how, "flags") == 0) {
		int flags = FS_NOATIME_FL | FS_NODUMP_FL;
		return ioctl(f, FS_IOC_SETFLAGS, &flags);
	}
	if (strcmp(how, "setattr") == 0) {
		struct { unsigned long xflags; unsigned a[4]; } a = {0x40 /* FS_XFLAG_NOATIME */, {0}};
		return syscall(file_setattr, AT_FDCWD, name, &a, 24, 0) != 0;
	}
	return 2;
}
