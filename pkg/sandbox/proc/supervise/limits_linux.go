package supervise

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// apply sets the limits of this process, which its children inherit, except Memory and
// CPUPercent, which the monitor enforces. Address space has no limit, since programs
// reserve memory that they never use.
func (l Limits) apply(level Level) error {
	limits := []struct {
		name     string
		resource int
		value    int64
		usual    int64
	}{
		{"file size", unix.RLIMIT_FSIZE, l.FileBytes, 4 << 30},
		{"open files", unix.RLIMIT_NOFILE, l.Files, -1},
		{"processes", unix.RLIMIT_NPROC, l.Processes, defaultProcessLimit(level)},
		{"core files", unix.RLIMIT_CORE, 0, 0},
	}
	for _, limit := range limits {
		value := limit.value
		if value == 0 {
			value = limit.usual
		}
		var now unix.Rlimit
		if err := unix.Getrlimit(limit.resource, &now); err != nil {
			return fmt.Errorf("limit of %s: %w", limit.name, err)
		}
		wanted := now.Max
		if value >= 0 && uint64(value) < now.Max {
			wanted = uint64(value)
		}
		if err := unix.Setrlimit(limit.resource, &unix.Rlimit{Cur: wanted, Max: wanted}); err != nil {
			return fmt.Errorf("limit of %s: %w", limit.name, err)
		}
	}
	return nil
}

// defaultProcessLimit returns the default limit of processes, -1 for none. The
// kernel counts processes for each user and user namespace: without a
// namespace the user's other processes would count too.
func defaultProcessLimit(level Level) int64 {
	if level == L2 {
		return 8192
	}
	return -1
}
