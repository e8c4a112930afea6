//go:build linux

package proc_test

// attack is a script whose effect a command must not achieve. It prints
// ESCAPED on success. An attack that fails even without confinement shows
// nothing, and counts as not run.
type attack struct {
	name   string
	levels string // the levels at which it must fail; at others it is a known gap
	needs  string // programs; amd64; long for a slow one; nobody for one that does not need to run as root too
	script string
}

// Run unconfined, and as root too, an attack changes only its scene and reads
// nothing else. For attacks on the machine itself, see onlyAsked.
//
// Variables of the scripts: OUT is a directory outside the roots, ROOT the
// root (the working directory), RO a read-only root, HOME contains
// credentials. VICTIM is a process outside with SECRET in its environment,
// SERVER is the server. PORT is a TCP and UDP listener on loopback, PORT6 one
// on ::1. SOCK is a unix socket outside, RSOCK one in the root, ABSTRACT the
// name of an abstract one.

const (
	bothLevels = "L1 L2"
	onlyL2     = "L2"
)

var fileAttacks = []attack{
	{"create outside", bothLevels, "", `echo x > $OUT/new && echo ESCAPED`},
	{"append outside", bothLevels, "", `echo x >> $OUT/file && echo ESCAPED`},
	{"truncate outside", bothLevels, "perl", `perl -e 'truncate("$ENV{OUT}/file", 0) and print "ESCAPED"'`},
	{"delete outside", bothLevels, "", `rm -f $OUT/file && echo ESCAPED`},
	{"make a directory outside", bothLevels, "", `mkdir $OUT/new && echo ESCAPED`},
	{"remove a directory outside", bothLevels, "", `rmdir $OUT/dir && echo ESCAPED`},
	{"make a fifo outside", bothLevels, "", `mkfifo $OUT/new && echo ESCAPED`},
	{"make a link outside", bothLevels, "", `ln -s x $OUT/new && echo ESCAPED`},
	{"rename outside", bothLevels, "", `mv $OUT/file $OUT/new && echo ESCAPED`},
	{"move in from outside", bothLevels, "perl", `perl -e 'rename("$ENV{OUT}/file", "$ENV{ROOT}/in") and print "ESCAPED"'`},
	{"move out", bothLevels, "perl", `echo x > f; perl -e 'rename("f", "$ENV{OUT}/new") and print "ESCAPED"'`},
	{"write through a link", bothLevels, "", `ln -s $OUT/file l && echo x > l && echo ESCAPED`},
	{"write through a directory link", bothLevels, "", `ln -s $OUT d && echo x > d/new && echo ESCAPED`},
	{"write through a dangling link", bothLevels, "", `ln -s $OUT/new l && echo x > l && echo ESCAPED`},
	{"write through ..", bothLevels, "", `echo x > $ROOT/../outside/new && echo ESCAPED`},
	{"hard link outside into the root", bothLevels, "", `ln $OUT/file h && echo x >> h && echo ESCAPED`},
	{"hard link out", bothLevels, "", `echo x > f && ln f $OUT/new && echo ESCAPED`},
	{"write through /proc/self/root", bothLevels, "", `echo x > /proc/self/root$OUT/new && echo ESCAPED`},
	{"write through /proc/self/cwd", bothLevels, "", `cd $OUT && echo x > /proc/self/cwd/new && echo ESCAPED`},
	{"write through the victim's root", bothLevels, "", `echo x > /proc/$VICTIM/root$OUT/new && echo ESCAPED`},
	{"write through the victim's directory", bothLevels, "", `echo x > /proc/$VICTIM/cwd/new && echo ESCAPED`},
	{"write through the victim's descriptor", bothLevels, "", `echo x > /proc/$VICTIM/fd/1 && echo ESCAPED`},
	{"write through the first process's root", bothLevels, "", `echo x > /proc/1/root$OUT/new && echo ESCAPED`},
	{"write as a new user", bothLevels, "unshare", `unshare -Ur sh -c 'echo x > $OUT/new && echo ESCAPED'`},
	{"bind outside into the root", bothLevels, "unshare mount", `mkdir m; unshare -Urm sh -c 'mount --bind $OUT m && echo x > m/new && echo ESCAPED'`},
	{"mount over the root", bothLevels, "unshare mount", `unshare -Urm sh -c 'mount -t tmpfs x /mnt && echo ESCAPED'`},
	{"mount anew as writable", bothLevels, "mount", `mount -o remount,rw / 2>/dev/null; echo x > $OUT/new && echo ESCAPED`},
	{"change root", bothLevels, "unshare chroot", `unshare -Ur chroot / sh -c 'echo x > $OUT/new && echo ESCAPED'`},
	{"change modes outside", onlyL2, "", `chmod 777 $OUT/file && echo ESCAPED`},
	{"change times outside", onlyL2, "", `touch -d 2001-01-01 $OUT/file && echo ESCAPED`},
	{"write into a read-only root", bothLevels, "", `echo x > $RO/new && echo ESCAPED`},
	{"change a read-only root", bothLevels, "", `echo x >> $RO/file && echo ESCAPED`},

	{"read a key", bothLevels, "", `grep -q CREDENTIAL $HOME/.ssh/id_rsa && echo ESCAPED`},
	{"read credentials in a directory", bothLevels, "", `grep -q CREDENTIAL $HOME/.config/gh/hosts.yml && echo ESCAPED`},
	{"read a credentials file", bothLevels, "", `grep -q CREDENTIAL $HOME/.netrc && echo ESCAPED`},
	{"read a history", bothLevels, "", `grep -q CREDENTIAL $HOME/.bash_history && echo ESCAPED`},
	{"read docker's credentials", bothLevels, "", `grep -q CREDENTIAL $HOME/.docker/config.json && echo ESCAPED`},
	{"read a key through a link", bothLevels, "", `ln -s $HOME/.ssh l && grep -q CREDENTIAL l/id_rsa && echo ESCAPED`},
	{"read a key through a link in home", bothLevels, "", `grep -q CREDENTIAL $HOME/keys/id_rsa && echo ESCAPED`},
	{"read a key through a hard link", bothLevels, "", `ln $HOME/.ssh/id_rsa k && grep -q CREDENTIAL k && echo ESCAPED`},
	{"read a key through /proc/self/root", bothLevels, "", `grep -q CREDENTIAL /proc/self/root$HOME/.ssh/id_rsa && echo ESCAPED`},
	{"read a key through the victim's root", bothLevels, "", `grep -q CREDENTIAL /proc/$VICTIM/root$HOME/.ssh/id_rsa && echo ESCAPED`},
	{"copy all of home", bothLevels, "", `cp -r $HOME/. h 2>/dev/null; grep -rq CREDENTIAL h && echo ESCAPED`},
	{"open up a key store", bothLevels, "", `chmod -R 777 $HOME/.ssh; grep -q CREDENTIAL $HOME/.ssh/id_rsa && echo ESCAPED`},
	{"uncover a key store", bothLevels, "umount", `umount -l $HOME/.ssh; grep -q CREDENTIAL $HOME/.ssh/id_rsa && echo ESCAPED`},
	{"uncover a key store as a new user", bothLevels, "unshare umount", `unshare -Urm sh -c 'umount -l $HOME/.ssh; grep -q CREDENTIAL $HOME/.ssh/id_rsa && echo ESCAPED'`},
	{"read a key in the root", onlyL2, "", `grep -q CREDENTIAL sub/id_rsa && echo ESCAPED`},
	{"read a key by another name in the root", onlyL2, "", `grep -q CREDENTIAL sub/tls.pem && echo ESCAPED`},
	{"move a key in the root", onlyL2, "", `mv sub/id_rsa x && grep -q CREDENTIAL x && echo ESCAPED`},
	{"move the directory of a key", onlyL2, "", `mv sub x && grep -q CREDENTIAL x/id_rsa && echo ESCAPED`},
	{"read a disk", bothLevels, "", `for d in /dev/vd? /dev/sd? /dev/nvme?n?; do head -c1 $d >/dev/null 2>&1 && echo ESCAPED; done`},
	{"make a device", bothLevels, "", `mknod d c 1 3 && echo ESCAPED`},
	{"make a device by a rename", bothLevels, "perl amd64", `touch d; perl -e '$a = "d"; $b = "e"; syscall(316, -100, $a, -100, $b, 4)'; [ -c d ] && echo ESCAPED`},                                                      // renameat2, RENAME_WHITEOUT
	{"change a file's version", bothLevels, "perl", `perl -e 'open F, "<", "$ENV{RO}/file"; print "ESCAPED" if ioctl F, 0x40087602, $v = pack("q", 7)'`},                                                                 // FS_IOC_SETVERSION
	{"change a file's generation", bothLevels, "perl", `perl -e 'open F, "<", "$ENV{RO}/file"; $r = ioctl F, 0x40086604, $v = pack("q", 7); print "ESCAPED" if $r or !$!{EOPNOTSUPP}'`},                                  // EXT4_IOC_SETVERSION
	{"set an encryption policy", bothLevels, "perl", `perl -MFcntl -e 'sysopen F, "$ENV{RO}", O_RDONLY; $r = ioctl F, 0x800c6613, $v = pack("C4a8", 0, 1, 4, 3, "AAAAAAAA"); print "ESCAPED" if $r or !$!{EOPNOTSUPP}'`}, // FS_IOC_SET_ENCRYPTION_POLICY
	{"make a subvolume", bothLevels, "perl", `perl -MFcntl -e 'sysopen F, "$ENV{RO}", O_RDONLY; $r = ioctl F, 0x5000940e, $v = pack("qa4088", 0, "sub"); print "ESCAPED" if $r or !$!{EOPNOTSUPP}'`},                     // BTRFS_IOC_SUBVOL_CREATE
	{"remove a subvolume", bothLevels, "perl", `perl -MFcntl -e 'sysopen F, "$ENV{RO}", O_RDONLY; $r = ioctl F, 0x5000940f, $v = pack("qa4088", 0, "sub"); print "ESCAPED" if $r or !$!{EOPNOTSUPP}'`},                   // BTRFS_IOC_SNAP_DESTROY
	{"set the attributes of FAT", bothLevels, "perl", `perl -MFcntl -e 'sysopen F, "$ENV{RO}/file", O_RDONLY; $r = ioctl F, 0x40047211, $v = pack("L", 1); print "ESCAPED" if $r or !$!{ENOTTY}'`},                       // FAT_IOCTL_SET_ATTRIBUTES
	{"leave a message queue behind", "L1", "perl amd64", `perl -e '$n = "toolroom$$"; $r = syscall(240, $n, 0102, 0600, 0); print "ESCAPED" if syscall(241, $n) == 0'`},                                                  // mq_open, mq_unlink
	{"read shadow", bothLevels, "", `grep -q : /etc/shadow && echo ESCAPED`},

	{"write a hook", onlyL2, "", `echo x > .git/hooks/pre-commit && echo ESCAPED`},
	{"add a hook", onlyL2, "", `echo x > .git/hooks/post-merge && echo ESCAPED`},
	{"delete a hook", onlyL2, "", `rm -f .git/hooks/pre-commit && echo ESCAPED`},
	{"replace the hooks", onlyL2, "", `mv .git/hooks x && mkdir .git/hooks && echo ESCAPED`},
	{"replace the repository", onlyL2, "", `mv .git x && mkdir -p .git/hooks && echo ESCAPED`},
	{"write a hook through a hard link", onlyL2, "", `ln .git/hooks/pre-commit h && echo x >> h && echo ESCAPED`},
	{"write a hook through a link", onlyL2, "", `ln -s .git/hooks d && echo x >> d/pre-commit && echo ESCAPED`},
	{"replace what holds the repository", onlyL2, "", `mv nested x && mkdir -p nested/.git/hooks && echo ESCAPED`},
	{"write an agent's settings", onlyL2, "", `echo x > .claude/settings.json && echo ESCAPED`},
	{"replace an agent's settings", onlyL2, "", `echo x > n && mv n .claude/settings.json && echo ESCAPED`},
	{"write .envrc", onlyL2, "", `echo x >> .envrc && echo ESCAPED`},

	// The first two only open the file, inside as well.
	{"write to /proc/sys", bothLevels, "", `(: >> /proc/sys/kernel/core_pattern) && echo ESCAPED`},
	{"write to /sys", bothLevels, "", `(: >> /sys/kernel/mm/transparent_hugepage/enabled) && echo ESCAPED`},
	{"make a control group", bothLevels, "", `for d in /sys/fs/cgroup /sys/fs/cgroup/unified; do mkdir $d/probe$$ 2>/dev/null && rmdir $d/probe$$ && echo ESCAPED; done`},
}

// onlyAsked holds scripts that run unconfined instead of attacks on the
// machine itself. They only check whether the attack would work.
var onlyAsked = map[string]string{
	"read a disk":            `for d in /dev/vd? /dev/sd? /dev/nvme?n?; do [ -r $d ] && echo ESCAPED; done`,
	"read shadow":            `[ -r /etc/shadow ] && echo ESCAPED`,
	"mount anew as writable": `[ -w $OUT ] && echo ESCAPED`,
	"write to /proc/sys":     `[ -w /proc/sys/kernel/core_pattern ] && echo ESCAPED`,
	"write to /sys":          `[ -w /sys/kernel/mm/transparent_hugepage/enabled ] && echo ESCAPED`,
	"make a control group":   `for d in /sys/fs/cgroup /sys/fs/cgroup/unified; do [ -d $d ] && [ -w $d ] && echo ESCAPED; done`,
}

var processAttacks = []attack{
	{"kill the victim", bothLevels, "", `kill -9 $VICTIM && echo ESCAPED`},
	{"signal the server", bothLevels, "", `kill -0 $SERVER && echo ESCAPED`},
	{"signal everything", bothLevels, "perl", `perl -e 'print "ESCAPED" if kill 0, $ENV{VICTIM}'`},
	{"read the victim's environment", bothLevels, "", `grep -zq SECRET /proc/$VICTIM/environ && echo ESCAPED`},
	{"read the server's environment", bothLevels, "", `grep -zq . /proc/$SERVER/environ && echo ESCAPED`},
	{"read the victim's memory map", bothLevels, "", `grep -q . /proc/$VICTIM/maps && echo ESCAPED`},
	{"follow the victim's directory", bothLevels, "", `readlink /proc/$VICTIM/cwd && echo ESCAPED`},
	{"trace the victim", bothLevels, "perl amd64", `perl -e 'print "ESCAPED" if syscall(101, 0x4206, $ENV{VICTIM} + 0, 0, 0) == 0'`}, // PTRACE_SEIZE
	{"trace the victim by gdb", bothLevels, "long gdb", `gdb -p $VICTIM -batch -ex 'info proc' 2>/dev/null | grep -q '^process\|^exe' && echo ESCAPED`},
	{"trace a child", bothLevels, "strace", `strace -o /dev/null true && echo ESCAPED`},
	{"limit the victim", bothLevels, "prlimit", `prlimit --pid $VICTIM --nofile=99 && echo ESCAPED`},
	{"slow the victim down", bothLevels, "renice", `renice -n 19 -p $VICTIM && echo ESCAPED`},
	{"see the victim", onlyL2, "", `[ -d /proc/$VICTIM ] && grep -aq sleep /proc/$VICTIM/cmdline && echo ESCAPED`},
	{"bind the victim to a processor", bothLevels, "taskset", `taskset -cp 0 $VICTIM && echo ESCAPED`},
	{"change the victim's scheduling", bothLevels, "chrt", `chrt -i -p 0 $VICTIM && echo ESCAPED`},
	{"slow the victim's reading", bothLevels, "ionice", `ionice -c 2 -n 7 -p $VICTIM && echo ESCAPED`},
	{"slow the user's reading", bothLevels, "ionice", `ionice -c 2 -n 7 -u $(id -u) && ionice -p $VICTIM | grep -q 'prio 7' && echo ESCAPED`},
	{"enter the victim's namespaces", bothLevels, "nsenter", `nsenter -t $VICTIM -m -n true && echo ESCAPED`},
	{"create a user namespace", bothLevels, "unshare", `unshare -Ur true && echo ESCAPED`},
	{"create a network namespace", bothLevels, "unshare", `unshare -Urn true && echo ESCAPED`},
	{"use the 32-bit calls", bothLevels, "gcc amd64", `cat > a.c <<'END'
#include <stdio.h>
int main(void){ int r; __asm__ volatile("int $0x80" : "=a"(r) : "a"(20)); if (r > 0) puts("ESCAPED"); }
END
gcc -o a a.c && ./a`},
	{"use keys", bothLevels, "perl amd64", `perl -e 'print "ESCAPED" if syscall(250, 0, -3, 1) > 0'`},
	{"use io_uring", bothLevels, "perl amd64", `perl -e '$p = "\0" x 120; print "ESCAPED" if syscall(425, 4, $p) >= 0'`},
	{"use BPF", bothLevels, "perl amd64", `perl -e '$p = pack("LLLLL", 2, 4, 4, 1, 0) . "\0" x 100; print "ESCAPED" if syscall(321, 0, $p, 72) >= 0'`},
	{"use performance counters", bothLevels, "perl amd64", `perl -e '$p = pack("LLQ", 1, 112, 0) . "\0" x 96; print "ESCAPED" if syscall(298, $p, 0, -1, -1, 0) >= 0'`},
	{"use userfaultfd", bothLevels, "perl amd64", `perl -e 'print "ESCAPED" if syscall(323, 1) >= 0'`},
	{"open by handle", bothLevels, "gcc", `cat > a.c <<'END'
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
int main(void){ struct file_handle *h = malloc(sizeof *h + 128); int m; h->handle_bytes = 128;
if (name_to_handle_at(AT_FDCWD, getenv("OUT"), h, &m, 0)) return 1;
int d = open("/", O_RDONLY); if (open_by_handle_at(d, h, O_RDONLY) >= 0) puts("ESCAPED"); }
END
gcc -o a a.c && ./a`},
	{"type into a terminal", bothLevels, "python3", `python3 - <<'END'
import os, pty, fcntl, termios
pid, fd = pty.fork()
if pid == 0:
    try:
        fcntl.ioctl(0, termios.TIOCSTI, b"x")
        os.write(1, b"ESCA" b"PED")
    except OSError as e:
        os.write(1, str(e).encode())
    os._exit(0)
print(os.read(fd, 100).decode())
END`},
}

var networkAttacks = []attack{
	{"bash", bothLevels, "", `exec 3<>/dev/tcp/127.0.0.1/$PORT && echo ESCAPED`},
	{"curl", bothLevels, "nobody curl", `curl -s -m 5 telnet://127.0.0.1:$PORT </dev/null; [ $? = 0 ] && echo ESCAPED`},
	{"perl", bothLevels, "perl", `perl -MIO::Socket::INET -e 'print "ESCAPED" if IO::Socket::INET->new("127.0.0.1:$ENV{PORT}")'`},
	{"python", bothLevels, "nobody python3", `python3 -c 'import os, socket; socket.create_connection(("127.0.0.1", int(os.environ["PORT"]))); print("ESCAPED")'`},
	{"node", bothLevels, "nobody node", `node -e 'require("net").connect(process.env.PORT, "127.0.0.1", () => { console.log("ESCAPED"); process.exit() }).on("error", e => console.log(e.code))'`},
	{"C", bothLevels, "nobody gcc", `cat > a.c <<'END'
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
int main(void){ struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(getenv("PORT"))), .sin_addr.s_addr = htonl(0x7f000001)};
if (!connect(socket(AF_INET, SOCK_STREAM, 0), (void*)&a, sizeof a)) puts("ESCAPED"); }
END
gcc -o a a.c && ./a`},
	{"git", bothLevels, "nobody git", `timeout 5 git ls-remote git://127.0.0.1:$PORT/x 2>&1 | grep -q 'early EOF\|hung up\|access rights' && echo ESCAPED`},
	{"openssl", bothLevels, "nobody openssl", `timeout 5 openssl s_client -connect 127.0.0.1:$PORT </dev/null 2>/dev/null | grep -q CONNECTED && echo ESCAPED`},
	{"ssh", bothLevels, "nobody ssh", `timeout 5 ssh -v -o BatchMode=yes -p $PORT x@127.0.0.1 2>&1 | grep -q 'Connection established' && echo ESCAPED`},
	{"wget", bothLevels, "nobody wget", `wget -t1 -T5 -O- http://127.0.0.1:$PORT/ 2>&1 | grep -q 'connected' && echo ESCAPED`},
	{"tclsh", bothLevels, "nobody tclsh", `echo 'if {![catch {socket 127.0.0.1 $env(PORT)}]} {puts ESCAPED}' | tclsh`},
	{"gdb's python", bothLevels, "long gdb", `gdb -batch -ex 'python import os,socket; socket.create_connection(("127.0.0.1", int(os.environ["PORT"]))); print("ESCAPED")' 2>/dev/null`},
	{"php", bothLevels, "php", `php -r 'if (@fsockopen("127.0.0.1", getenv("PORT"))) echo "ESCAPED";'`},
	{"ruby", bothLevels, "ruby", `ruby -rsocket -e 'TCPSocket.new("127.0.0.1", ENV["PORT"]); puts "ESCAPED"'`},
	{"socat", bothLevels, "socat", `socat -u OPEN:/dev/null TCP:127.0.0.1:$PORT && echo ESCAPED`},
	{"IPv6", bothLevels, "perl", `perl -MSocket=:all -e 'socket(S, AF_INET6, SOCK_STREAM, 0) and connect(S, pack_sockaddr_in6($ENV{PORT6}, inet_pton(AF_INET6, "::1"))) and print "ESCAPED"'`},
	{"UDP", bothLevels, "perl", `perl -MSocket -e 'socket(S, AF_INET, SOCK_DGRAM, 0); $a = pack_sockaddr_in($ENV{PORT}, inet_aton("127.0.0.1")); connect(S, $a); send(S, "x", 0) and select(undef,undef,undef,.05), send(S, "x", 0) and print "ESCAPED"'`},
	{"MPTCP", bothLevels, "perl", `perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 262) and connect(S, pack_sockaddr_in($ENV{PORT}, inet_aton("127.0.0.1"))) and print "ESCAPED"'`},
	{"TCP fast open", bothLevels, "perl", `perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 0) and defined send(S, "x", 0x20000000, pack_sockaddr_in($ENV{PORT}, inet_aton("127.0.0.1"))) and print "ESCAPED"'`},
	{"unix socket outside", bothLevels, "perl", `perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) and connect(S, pack_sockaddr_un($ENV{SOCK})) and print "ESCAPED"'`},
	{"unix socket in the root", bothLevels, "perl", `perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) and connect(S, pack_sockaddr_un($ENV{RSOCK})) and print "ESCAPED"'`},
	{"unix socket through a link", bothLevels, "perl", `ln -s $SOCK l; perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) and connect(S, pack_sockaddr_un("l")) and print "ESCAPED"'`},
	{"unix socket by hard link", bothLevels, "perl", `ln $SOCK l 2>/dev/null; perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) and connect(S, pack_sockaddr_un("l")) and print "ESCAPED"'`},
	{"unix socket by half a pair", bothLevels, "perl", `perl -MSocket -MErrno -e 'socketpair(S, T, AF_UNIX, SOCK_DGRAM, 0) and (connect(S, pack_sockaddr_un($ENV{SOCK})) or $!{EPROTOTYPE}) and print "ESCAPED"'`},
	{"abstract socket", bothLevels, "perl", `perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) and connect(S, pack("S a*", AF_UNIX, "\0$ENV{ABSTRACT}")) and print "ESCAPED"'`},
	{"raw socket", bothLevels, "perl", `perl -MSocket -e 'socket(S, AF_INET, SOCK_RAW, 1) and print "ESCAPED"'`},
	{"packet socket", bothLevels, "perl", `perl -MSocket -e 'socket(S, 17, SOCK_RAW, 0) and print "ESCAPED"'`},
	{"vsock", bothLevels, "perl", `perl -MSocket -e 'socket(S, 40, SOCK_STREAM, 0) and print "ESCAPED"'`},
	{"kernel crypto socket", bothLevels, "perl", `perl -MSocket -e 'socket(S, 38, 5, 0) and print "ESCAPED"'`},
	{"see network devices", onlyL2, "", `ls /sys/class/net | grep -v '^lo$' | grep -q . && echo ESCAPED`},
}
