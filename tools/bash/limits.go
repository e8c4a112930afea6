package main

import (
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// Limits and defaults that callers meet. The time between TERM and KILL is
// proc.DefaultGrace, and the default size of a command's output file is
// proc.DefaultSpillBytes; config.go has the limits that flags set. The tags of arguments
// repeat the times in milliseconds.
const (
	// defaultTimeout is the time after which a command is killed if the call gives
	// no timeout, unless it runs in the background.
	defaultTimeout = 120 * time.Second
	// maxTimeout is the longest timeout of a command.
	maxTimeout = 600 * time.Second
	// defaultPatience is the time after which a running command becomes a job.
	defaultPatience = 45 * time.Second
	// maxWait is the longest wait of a poll. It is less than the 60 s after which
	// common clients time out.
	maxWait = 50 * time.Second

	// deadline exceeds the longest call: the timeout, the time to end processes
	// that ignore signals, and a margin.
	deadline = maxTimeout + 15*time.Second
	// jobDeadline exceeds the longest wait of a poll.
	jobDeadline = maxWait + 10*time.Second

	// maxConcurrent is the largest number of concurrent calls of bash. It
	// bounds their memory.
	maxConcurrent = 64
	// maxCalls allows calls of bash_job while all calls of bash run.
	maxCalls = 4 * maxConcurrent
	// maxJobs bounds the jobs. The oldest ended job is dropped for a new one.
	maxJobs = 32
	// jobPageChars is the most characters in one page of a job's output.
	jobPageChars = proc.DefaultCharacters

	// maxSessions bounds the sessions; the least recently used one is dropped for a
	// new one.
	maxSessions = 64
	// maxVariables bounds the variables of a session, in bytes.
	maxVariables = 256 << 10
)
