package upstream

// A wire carries messages to and from one run of a server.
type wire interface {
	// send passes one message on, which it keeps, without waiting for the
	// server to take it. Its error wraps errNotSent when nothing of the
	// message was sent nor will be.
	send(message []byte) error

	// close refuses further messages.
	close()

	// run gives the server's messages to c, until there will be no more or c
	// is dead, sees to it that nothing of the server is left, and says why
	// it ended.
	run(c *conn) error

	// describe is what a listing of the servers shows.
	describe() description
}

// description is what is known of a server's run beside its messages.
type description struct {
	pid    int    // 0: no process of the host's
	stderr string // the end of what it wrote
}
