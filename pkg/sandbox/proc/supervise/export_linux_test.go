package supervise

// EnvironOf returns the environment of a process; ok is false during an exec.
func EnvironOf(pid int) (env []byte, ok bool) { return environOf(pid) }
