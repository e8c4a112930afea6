package sandbox

import (
	"context"
	"runtime"
)

// Remove deletes the file. expect is the version that may be deleted, as in
// ReplaceOptions; nil: any version. unsynced is not nil if the disk did not confirm
// the deletion (see Written.Unsynced).
func (t *Target) Remove(ctx context.Context, expect *Stat) (unsynced, err error) {
	defer runtime.KeepAlive(t.fs)
	r := &replacement{Target: t, ctx: ctx, options: ReplaceOptions{Expect: expect}, done: &Written{}}
	if err := r.remove(); err != nil {
		return nil, t.fs.explainWriteError(t.name, t.explainAbsent(err))
	}
	return t.dir.sync(), nil
}

// remove deletes the file if it is the expected version. It returns the error of
// currentStat if there is no file.
func (r *replacement) remove() error {
	if err := r.checkExpected(); err != nil {
		return err
	}
	if r.old == nil {
		_, err := r.currentStat()
		return err
	}
	if err := r.checkBeforePublish(); err != nil {
		return err
	}
	return r.dir.remove(r.base)
}
