package upstream

// A wire carries messages to and from one run of a server.
type wire interface {
	// send takes ownership of one message and sends it without waiting for the server.
	// If it returns an error, nothing of the message was or will be sent. The error wraps
	// errNotSent if the run is ending.
	send(message []byte) error

	// close refuses further messages.
	close()

	// run passes the server's messages to c until there are no more or c is dead, ends
	// everything that belongs to the run, and returns why it ended.
	run(c *conn) error

	// describe returns the data for a listing of servers.
	describe() wireDescription
}

// A receiver handles the output of a server's process.
type receiver interface {
	handleLine(line []byte) // handles a message
	countStray(line []byte) // counts a line that is not a message
	failTooLong(err error)  // handles a line that was too long
	fail(err error)         // ends the connection; the first error counts
	done() <-chan struct{}  // closed after fail
}

// wireDescription describes a server's run.
type wireDescription struct {
	pid     int      // 0: not a process of the host
	stderr  string   // the end of its standard error
	sandbox string   // see ConfinedProcess.Sandbox; "": not confined
	refused []string // see ConfinedProcess.Refused
}
