package proc

import (
	"bufio"
	"errors"
	"net"
	"os"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// jobSupervisor supervises one command within this process: the kernel ends the command
// with the last handle of its job object, so no other process is needed.
type jobSupervisor struct {
	conn  net.Conn
	files chan []*os.File
	done  chan struct{} // closed when the command has ended
}

// startSupervisor starts a supervisor, which waits for its spec.
func startSupervisor(level Level, _ bool, _ *supervise.Spec) (*supervisor, error) {
	ours, theirs := net.Pipe()
	j := &jobSupervisor{conn: theirs, files: make(chan []*os.File, 1), done: make(chan struct{})}
	go j.run()
	return &supervisor{process: j, pid: os.Getpid(), control: ours, level: level}, nil
}

// run receives the spec and supervises its command.
func (j *jobSupervisor) run() {
	defer close(j.done)
	defer j.conn.Close()
	in, s := bufio.NewReader(j.conn), &supervise.Spec{}
	if supervise.ReadMessage(in, s) == nil {
		supervise.SuperviseWindows(j.conn, in, s, <-j.files)
	}
}

// Kill ends the command.
func (j *jobSupervisor) Kill() error { return j.conn.Close() }

// Wait waits until the command has ended. It returns nil, nil: the reports have the exit
// code.
func (j *jobSupervisor) Wait() (*os.ProcessState, error) {
	<-j.done
	return nil, nil
}

// sendFiles passes text and the files to the supervisor. It does not close the files.
func (s *supervisor) sendFiles(text []byte, files []*os.File) error {
	j, ok := s.process.(*jobSupervisor)
	if !ok || len(files) < 3 {
		return errors.New("a command without standard streams")
	}
	j.files <- files[:3]
	_, err := s.control.Write(text)
	return err
}

// hangUp makes the supervisor kill all processes of the command at once.
func (s *supervisor) hangUp() { s.control.Close() }

// readMountTable returns "": there are no mounts of a command.
func readMountTable(Level) string { return "" }

// outputPipe returns a pipe of the system's own size.
func outputPipe() (read, write *os.File, err error) { return os.Pipe() }

// drain does nothing: the pipe has ended with the processes of the job.
func drain(*os.File, []byte, func([]byte)) {}

// canRead reports whether the server can open a file for reading.
func canRead(path string) bool {
	f, err := os.Open(path)
	closeAll(f)
	return err == nil
}

// isOwnFile returns true: others cannot write in the user's directory for temporary files.
func isOwnFile(os.FileInfo) bool { return true }

// setExitStatus sets the result's exit code.
func (p *Process) setExitStatus(code int) { p.result.ExitCode = code }

// selfPath is the path of the running program.
func selfPath() (string, error) { return os.Executable() }

// openNonblock is 0: opening a regular file does not wait.
const openNonblock = 0

// prologuePath returns "": there is no prologue.
func prologuePath(int) string { return "" }
