package writeguard

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// foreignStateDirs lists the directories with the state of a root that processes of this
// user hold open. Servers with another state directory hold such directories, but this
// process does as well: the caller leaves those out.
func foreignStateDirs() (dirs []string) {
	processes, _ := os.ReadDir("/proc")
	mounts, _ := os.Readlink("/proc/self/ns/mnt")
	for _, process := range processes {
		proc := "/proc/" + process.Name()
		if process.Name()[0] > '9' || !isTrustedPeer(proc, mounts) {
			continue
		}
		d, err := os.Open(proc + "/fd")
		if err != nil {
			continue
		}
		names, _ := d.Readdirnames(-1)
		d.Close()
		for _, name := range names {
			target, err := os.Readlink(proc + "/fd/" + name)
			if err == nil && strings.HasSuffix(target, "/use") && strings.HasPrefix(filepath.Base(filepath.Dir(filepath.Dir(target))), "watch-") {
				dirs = append(dirs, filepath.Dir(target))
			}
		}
	}
	return dirs
}

// isTrustedPeer reports whether a process belongs to this user, has the same
// mount namespace and is not confined. A confined process could lie. It is
// recognized by NoNewPrivs, which cannot be reset. procDir is the process's
// directory in /proc, mountNamespace the link ns/mnt of this process.
func isTrustedPeer(procDir, mountNamespace string) bool {
	status, err := os.ReadFile(procDir + "/status")
	id := os.Geteuid()
	if err != nil || !bytes.Contains(status, []byte("\nNoNewPrivs:\t0\n")) || !bytes.Contains(status, fmt.Appendf(nil, "\nUid:\t%d\t%d\t%d\t%d\n", id, id, id, id)) {
		return false
	}
	theirNamespace, err := os.Readlink(procDir + "/ns/mnt")
	return err == nil && theirNamespace == mountNamespace
}
