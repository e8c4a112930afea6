package proc

// Activity describes the state of a command's processes at one moment.
type Activity struct {
	// Known is false if the system does not show the state of processes.
	Known bool
	// Asleep is true if no process is computing or waiting for a disk.
	Asleep bool
	// Program is the name of the process that was started last.
	Program string
	// Terminal is the name of a process that waits for input from a terminal:
	// it reads from one, or has set its terminal to deliver each key. "" means
	// none.
	Terminal string
}
