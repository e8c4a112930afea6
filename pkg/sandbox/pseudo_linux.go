package sandbox

import (
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Magic numbers that x/sys lacks, from <linux/magic.h> and the kernel's sources.
const (
	configfsMagic = 0x62656570
	fusectlMagic  = 0x65735543
	mqueueMagic   = 0x19800202
	nfsdMagic     = 0x6e667364
	rpcPipeMagic  = 0x67596969
)

// isPseudoType reports whether a file system of this type (statfs) shows the state of
// the kernel or of devices, changes it on reads, or, as autofs does, acts when a path
// is resolved.
func isPseudoType(st *unix.Statfs_t) bool {
	switch uint32(st.Type) {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEVPTS_SUPER_MAGIC, unix.DEBUGFS_MAGIC,
		unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC,
		unix.BPF_FS_MAGIC, unix.PSTOREFS_MAGIC, unix.EFIVARFS_MAGIC, unix.SELINUX_MAGIC, unix.SMACK_MAGIC,
		unix.BINFMTFS_MAGIC, unix.AUTOFS_SUPER_MAGIC, unix.BINDERFS_SUPER_MAGIC, unix.NSFS_MAGIC,
		unix.OPENPROM_SUPER_MAGIC, unix.RDTGROUP_SUPER_MAGIC, unix.XENFS_SUPER_MAGIC,
		configfsMagic, fusectlMagic, mqueueMagic, nfsdMagic, rpcPipeMagic:
		return true
	}
	return false
}

// devDevice returns the device number of the file system mounted on /dev, 0 if /dev is
// an ordinary directory. That file system contains device nodes, but statfs reports it
// as a tmpfs.
var devDevice = sync.OnceValue(func() uint64 {
	var top, dev unix.Stat_t
	if unix.Stat("/", &top) != nil || unix.Stat("/dev", &dev) != nil || top.Dev == dev.Dev {
		return 0
	}
	return uint64(dev.Dev)
})

// isPseudoRoot reports whether an entry found by os.Root, name in dir, is on a file
// system of isPseudoType or of devices, or cannot be examined.
func isPseudoRoot(dir *os.Root, name string, info fs.FileInfo) bool {
	if dev := statOfInfo(info).Dev; dev != 0 && dev == devDevice() {
		return true
	}
	f, err := dir.OpenFile(name, unix.O_PATH, 0)
	if err != nil {
		return true
	}
	defer f.Close()
	return isPseudoFile(int(f.Fd()))
}

// isPseudoPath reports whether a path outside the roots is on a file system of
// isPseudoType or of devices, or cannot be examined.
func isPseudoPath(path string) bool {
	var st unix.Stat_t
	var sfs unix.Statfs_t
	if unix.Lstat(path, &st) != nil || unix.Statfs(path, &sfs) != nil {
		return true
	}
	return isPseudoType(&sfs) || devDevice() != 0 && uint64(st.Dev) == devDevice()
}
