package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// WatchOptions holds the times of Watch; zero means the default.
type WatchOptions struct {
	Settle time.Duration // time without changes before files are read; 100 ms
	Limit  time.Duration // after which they are read despite changes; 1 s
	Poll   time.Duration // for paths that cannot be watched (a missing directory, too many watches); 2 s
	// PollOnly polls all files, for file systems without change events.
	PollOnly bool
}

// Watch calls changed for every effective or wrong change of the files of a
// configuration, until ctx ends; then it returns nil. load reads the configuration as
// it was read the first time. The calls are made one after another by this goroutine;
// changes during a call are combined into the next one.
//
// It watches directories instead of files, also those of every link on the way. So it
// notices a file that an editor replaces by renaming, and the swap of a ..data link
// with which Kubernetes updates a mounted ConfigMap.
func Watch(ctx context.Context, current Config, load func() (Config, error), opt WatchOptions, changed func(Change)) error {
	w := &watcher{current: current, load: load, changed: changed, files: current.Watched}
	if !slices.ContainsFunc(w.files, func(file string) bool { _, known := current.seen[file]; return !known }) {
		w.state, w.good = current.seen, current.seen
	}
	w.settle, w.limit, w.poll = positiveOr(opt.Settle, 100*time.Millisecond), positiveOr(opt.Limit, time.Second), positiveOr(opt.Poll, 2*time.Second)
	var events chan fsnotify.Event
	var faults chan error
	if !opt.PollOnly {
		// Without a watcher, as when the system has no more of them, all files are
		// polled.
		if notify, err := fsnotify.NewWatcher(); err == nil {
			defer notify.Close() //nolint:errcheck // nothing is left to lose
			w.notify, events, faults = notify, notify.Events, notify.Errors
		}
	}
	w.updateWatches()
	return w.run(ctx, events, faults)
}

// positiveOr returns d, or otherwise if d is not positive.
func positiveOr(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}

// watcher is the state of one call of Watch.
type watcher struct {
	current             Config
	load                func() (Config, error)
	changed             func(Change)
	settle, limit, poll time.Duration

	notify *fsnotify.Watcher
	files  []string          // the watched files
	names  []string          // names that decide where the files are, such as links
	events []string          // names and dirs, whose events matter
	dirs   []string          // watched directories
	trees  []string          // directories in which every name matters
	polled bool              // something cannot be watched
	state  map[string]string // of the files, as last seen; nil: not yet
	good   map[string]string // of the files, as last used; nil: unknown
	fault  string            // the last reported error
}

// run handles events until ctx ends, and returns nil. It reads the files when they have not
// changed for settle, or at the latest limit after the first change.
func (w *watcher) run(ctx context.Context, events <-chan fsnotify.Event, faults <-chan error) error {
	if len(w.files) == 0 { // nothing was read, or only a pipe
		<-ctx.Done()
		return nil
	}
	quiet := time.NewTimer(0) // checks at once: files may have changed since they were read
	defer quiet.Stop()
	var deadline time.Time
	tick := time.NewTicker(w.poll)
	defer tick.Stop()
	stir := func() {
		now := time.Now()
		if deadline.IsZero() {
			deadline = now.Add(w.limit)
		}
		quiet.Reset(max(0, min(w.settle, deadline.Sub(now))))
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-events:
			if slices.Contains(w.events, e.Name) || slices.Contains(w.trees, filepath.Dir(e.Name)) {
				stir()
			}
		case <-faults: // events were lost
			stir()
		case <-tick.C:
			if w.polled && w.isStale() {
				stir()
			}
		case <-quiet.C:
			deadline = time.Time{}
			if w.reload(); w.isStale() {
				stir()
			}
		}
	}
}

// isStale reports whether the files have changed since they were read. It is called
// after the watches are set, since no event reports earlier changes.
func (w *watcher) isStale() bool { return !maps.Equal(w.state, statesOf(w.files)) }

// reload reads the files if they have changed, and calls changed for an effective change, a new
// error, or the end of an error.
func (w *watcher) reload() {
	state := statesOf(w.files)
	if w.state != nil && maps.Equal(w.state, state) {
		w.updateWatches() // links may have other targets
		return
	}
	w.state = state
	var next Config
	err := checkStillRegular(w.current.piped)
	if err == nil {
		next, err = w.load()
	}
	if err == nil {
		err = w.checkEmptied(next)
	}
	if err == nil {
		err = checkVanished(w.current, next)
	}
	if err != nil {
		// Watch also the files that the rejected configuration would read: the
		// correction may be there.
		w.setFiles(append(slices.Clone(w.current.Watched), next.Watched...))
		w.updateWatches()
		if w.fault != err.Error() {
			w.fault = err.Error()
			w.changed(Change{Config: w.current, Err: err})
		}
		return
	}
	next.Guard = w.current.Guard
	change := Diff(w.current, next)
	repaired := w.fault != ""
	w.fault, w.current, w.good = "", next, state
	w.setFiles(next.Watched)
	w.updateWatches()
	if !change.IsEmpty() || repaired {
		w.changed(change)
	}
}

// checkStillRegular returns an error if a file has become something that would block a reader,
// such as a pipe.
func checkStillRegular(files []string) error {
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
			return fmt.Errorf("%s is no longer a regular file", file)
		}
	}
	return nil
}

// setFiles sets the watched files. New ones count as they are now.
func (w *watcher) setFiles(files []string) {
	slices.Sort(files)
	w.files = slices.Compact(files)
	now := statesOf(w.files)
	for file := range now {
		if before, ok := w.state[file]; ok {
			now[file] = before
		}
	}
	w.state = now
}

// checkEmptied returns an error if a file with content has become empty: an editor that
// writes in place empties it first.
func (w *watcher) checkEmptied(next Config) error {
	for _, file := range next.empty {
		if before, ok := w.good[file]; ok && before != contentHash(nil) {
			return fmt.Errorf("%s is empty; its servers stay until it has content, even a comment", file)
		}
	}
	return nil
}

// checkVanished returns an error if a file of the configuration is not used any more: an
// editor may be about to write it again, and an untrusted change by somebody else must
// not stop what runs.
func checkVanished(before, next Config) error {
	for _, file := range before.Files {
		if slices.Contains(next.Files, file) {
			continue
		}
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("%s was removed; its servers stay until it returns or the host is restarted", file)
		}
		return fmt.Errorf("%s changed and is no longer trusted; its servers stay as they are until mcp-host config trust", file)
	}
	return nil
}

// updateWatches brings the watches in line with the files. It repeats this while links
// change.
func (w *watcher) updateWatches() {
	const most = 5
	for range most {
		var names []string
		for _, file := range w.files {
			names = append(names, linkChain(file)...)
		}
		still := slices.Equal(names, w.names)
		w.names = names
		w.watchDirs() // each time: a directory may be another one with the same name
		if still || w.polled {
			return
		}
	}
	w.polled = true // the links keep changing
}

// watchDirs watches the directories of the names, and no others. It sets polled if one cannot be
// watched.
func (w *watcher) watchDirs() {
	w.polled = w.notify == nil
	if w.notify == nil {
		return
	}
	w.events = slices.Clone(w.names)
	var dirs []string
	for _, name := range w.names {
		dirs = append(dirs, filepath.Dir(name))
	}
	w.trees = nil
	for _, file := range w.files {
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			w.trees = append(w.trees, file)
		}
	}
	dirs = append(dirs, w.trees...)
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	w.events = append(w.events, dirs...)
	for _, dir := range w.dirs {
		if !slices.Contains(dirs, dir) {
			w.notify.Remove(dir) //nolint:errcheck // it may be gone
		}
	}
	w.dirs = nil
	for _, dir := range dirs {
		// Adding a watched directory again does nothing.
		if w.notify.Add(dir) == nil {
			w.dirs = append(w.dirs, dir)
		} else {
			w.polled = true
		}
	}
}

// linkChain returns the paths that decide what a path leads to: itself and, for every link
// on the way, the link and its target.
func linkChain(path string) []string {
	const most = 40 // links, as in the kernel
	names := []string{path}
	for range most {
		next := ""
		for p := path; p != filepath.Dir(p); p = filepath.Dir(p) {
			target, err := os.Readlink(p)
			if err != nil {
				continue
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(p), target)
			}
			names = append(names, p)
			next = filepath.Join(target, strings.TrimPrefix(path, p))
			break
		}
		if next == "" {
			break
		}
		path = next
		names = append(names, path)
	}
	return names
}

// statesOf returns the current states of files and directories by name; see fileState.
func statesOf(files []string) map[string]string {
	state := map[string]string{}
	for _, file := range files {
		text, err := ReadRegular(file)
		if state[file] = fileState(text, err); err != nil && dirNames(file) != nil {
			state[file] = contentHash([]byte(strings.Join(dirNames(file), "\x00")))
		}
	}
	return state
}

// dirNames returns the names in a directory; nil if it is none or cannot be read.
func dirNames(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	all := []string{}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// fileState returns the state of a file for the result of reading it: the hash of its content, "none"
// or "unreadable".
func fileState(text []byte, err error) string {
	switch {
	case err == nil:
		return contentHash(text)
	case errors.Is(err, fs.ErrNotExist):
		return "none"
	}
	return "unreadable"
}
