package proc

// Activity is what the processes of a command do at one moment.
type Activity struct {
	// Known is false where the system does not tell.
	Known bool
	// Asleep: none of the processes computes or waits for a disk.
	Asleep bool
	// Program is the name of the process that was started last.
	Program string
	// Terminal is the name of a process that waits for input from a terminal:
	// it reads one, or has made one give it each key. "" means none.
	Terminal string
}
