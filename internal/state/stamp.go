package state

import (
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// Stamp identifies a version of a file without reading it.
type Stamp struct {
	Size, ModTime, ChangeTime int64 // times in nanoseconds
	Dev, Ino                  uint64
	// Taken is the time at which the stamp was taken. A change shortly before
	// it may be invisible, because of the clock's resolution.
	Taken int64
}

// StampOf returns the stamp of a file described by stat. taken must be a time
// before the stat call.
func StampOf(stat sandbox.Stat, taken time.Time) Stamp {
	s := Stamp{Size: stat.Size, ModTime: stat.ModTime.UnixNano(), Dev: stat.Dev, Ino: stat.Ino, Taken: taken.UnixNano()}
	if !stat.ChangeTime.IsZero() {
		s.ChangeTime = stat.ChangeTime.UnixNano()
	}
	return s
}

// Grain is the time after a change within which another change may leave the
// same times: the tick of a kernel's clock, with a margin.
const Grain = 20 * time.Millisecond

// coarseGrain is Grain on file systems whose times are whole seconds.
const coarseGrain = 2 * time.Second

// Settled reports whether every later change of the file would change the
// stamp. It is false if the file was changed just before the stamp was taken,
// because a further change could leave the same times.
func (s Stamp) Settled() bool {
	last := s.ChangeTime
	if last == 0 {
		last = s.ModTime
	}
	grain := Grain
	if last%int64(time.Second) == 0 {
		grain = coarseGrain
	}
	return s.Taken-last >= int64(grain)
}

// SameVersion reports whether two stamps describe the same version of a file.
// It ignores Taken.
func (s Stamp) SameVersion(other Stamp) bool {
	s.Taken, other.Taken = 0, 0
	return s == other
}
