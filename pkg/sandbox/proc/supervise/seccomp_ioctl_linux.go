package supervise

import "golang.org/x/sys/unix"

// ioctlTypes lists the types of requests (the second byte, _IOC_TYPE) that a
// command may make: of terminals and all descriptors ('T'), sockets, epoll,
// /dev/random ('R'), block sizes of files, namespaces and pidfds, and of its
// own filters.
var ioctlTypes = [...]uint32{'T', 0x89, 0x8a, 'R', 0x00, 0xb7, 0xff, '!'}

// fileRequests lists the other requests that a command may make, which read
// from a file, or write to one that is open for writing. Other requests of file
// systems change attributes, encryption policies, generations or subvolumes
// even through a descriptor that was opened for reading, and Landlock does not
// restrict them.
var fileRequests = [...]uint32{
	0x80086601, 0x80046601, 0x80086603, 0x80087601, 0x80047601, // FS_IOC_GETFLAGS, EXT4_IOC_GETVERSION, FS_IOC_GETVERSION
	0xc020660b, 0x801c581f, 0x800c581e, 0x81009431, // FS_IOC_FIEMAP, FS_IOC_FSGETXATTR, XFS_IOC_DIOINFO, FS_IOC_GETFSLABEL
	unix.FICLONE, unix.FICLONERANGE, unix.FIDEDUPERANGE,
}

// fileTypes lists the types of requests of file systems. Refused ones fail as
// on a file system without them.
var fileTypes = [...]uint32{'f', 'X', 'v', 0x94}

// addIoctlRules adds the rules for ioctl(2): requests of ioctlTypes and
// fileRequests are allowed, all others fail, and so do TIOCSTI and TIOCLINUX,
// which write input for a terminal.
func (p *program) addIoctlRules() {
	p.loadArg(1)
	for _, request := range [...]uint32{unix.TIOCSTI, unix.TIOCLINUX} {
		p.ifTrue(unix.BPF_JEQ, request, func(p *program) { p.returnErrno(unix.EPERM) })
	}
	for _, request := range fileRequests {
		p.ifTrue(unix.BPF_JEQ, request, func(p *program) { p.allow() })
	}
	*p = append(*p, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 0xff00})
	for _, kind := range ioctlTypes {
		p.ifTrue(unix.BPF_JEQ, kind<<8, func(p *program) { p.allow() })
	}
	for _, kind := range fileTypes {
		p.ifTrue(unix.BPF_JEQ, kind<<8, func(p *program) { p.returnErrno(unix.EOPNOTSUPP) })
	}
	p.returnErrno(unix.ENOTTY)
}
