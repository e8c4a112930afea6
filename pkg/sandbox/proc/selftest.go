package proc

import "context"

// Report is what a self-test found.
type Report struct{ Level Level }

func (r *Runner) level(context.Context) (Level, error) { return r.config.Level, nil }

func (s *spec) confine(Rules, []string) {}
