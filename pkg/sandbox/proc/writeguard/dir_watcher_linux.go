package writeguard

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// dirWatcher reports changes of the entries of some directories.
type dirWatcher struct {
	file *os.File // of inotify
	// events receives a value after changes; several changes may share one.
	// It is closed by close.
	events chan struct{}
}

// watchDirs starts to watch directories. It returns nil if the kernel allows no
// further inotify instance. It sends an event when a file was created, moved in
// or written for whose name sendFor returns true. Directories that cannot be
// watched are skipped.
func watchDirs(dirs []string, sendFor func(name string) bool) *dirWatcher {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	for _, dir := range dirs {
		unix.InotifyAddWatch(fd, dir, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_CLOSE_WRITE|unix.IN_ONLYDIR|unix.IN_DONT_FOLLOW) //nolint:errcheck // the ticker also finds changes
	}
	n := &dirWatcher{file: os.NewFile(uintptr(fd), "inotify"), events: make(chan struct{}, 1)}
	go n.sendEvents(sendFor)
	return n
}

// sendEvents reads inotify and sends events until close. It sends one if sendFor returns
// true for the name of a changed entry, or if the kernel lost events. It closes n.events
// at its end.
func (n *dirWatcher) sendEvents(sendFor func(string) bool) {
	defer close(n.events)
	buf := make([]byte, 16<<10)
	for {
		size, err := n.file.Read(buf)
		if err != nil {
			return
		}
		told := false
		for at := 0; at+unix.SizeofInotifyEvent <= size; {
			event := (*unix.InotifyEvent)(unsafe.Pointer(&buf[at]))
			name := buf[at+unix.SizeofInotifyEvent : at+unix.SizeofInotifyEvent+int(event.Len)]
			told = told || event.Mask&unix.IN_Q_OVERFLOW != 0 || sendFor(unix.ByteSliceToString(name))
			at += unix.SizeofInotifyEvent + int(event.Len)
		}
		if told {
			select {
			case n.events <- struct{}{}:
			default:
			}
		}
	}
}

// close stops watching and waits for the goroutine.
func (n *dirWatcher) close() {
	n.file.Close()
	for range n.events {
	}
}
