//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// slots is the maximum of concurrent calls; id modulo slots is the slot of a caller.
const slots = 256

// answerLimit is the time after which an unanswered call fails the run.
const answerLimit = 2 * time.Minute

// stdioServer is a running MCP server with a minimal client: it decodes only the id of
// an answer.
type stdioServer struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	write   sync.Mutex
	answers [slots]chan []byte
	ended   chan struct{} // the reader is done
	errors  bytes.Buffer
}

func startStdio(command []string) (*stdioServer, error) {
	s := &stdioServer{cmd: exec.Command(command[0], command[1:]...), ended: make(chan struct{})}
	for i := range s.answers {
		s.answers[i] = make(chan []byte, 1)
	}
	s.cmd.Stderr = &s.errors
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go s.read(bufio.NewReaderSize(out, 256<<10))
	return s, nil
}

func (s *stdioServer) read(out *bufio.Reader) {
	defer close(s.ended)
	for {
		line, err := out.ReadBytes('\n')
		if err != nil {
			return
		}
		_, after, found := bytes.Cut(line, []byte(`"id":`))
		if !found {
			continue // a notification
		}
		end := bytes.IndexAny(after, ",}")
		if id, err := strconv.Atoi(string(bytes.TrimSpace(after[:max(end, 0)]))); err == nil && id >= 0 {
			s.answers[id%slots] <- line
		}
	}
}

func (s *stdioServer) send(line []byte) error {
	s.write.Lock()
	defer s.write.Unlock()
	_, err := s.in.Write(line)
	return err
}

// call sends one request and returns its answer. An error answer is an error.
func (s *stdioServer) call(id int, method, params string) ([]byte, error) {
	answer, err := s.roundTrip(id, method, params)
	if err == nil && (bytes.Contains(answer, []byte(`"error":{`)) || bytes.Contains(answer, []byte(`"isError":true`))) {
		return nil, fmt.Errorf("%s: %.300s", method, answer)
	}
	return answer, err
}

// roundTrip sends one request and returns its answer.
func (s *stdioServer) roundTrip(id int, method, params string) ([]byte, error) {
	line := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
	if err := s.send(line); err != nil {
		return nil, fmt.Errorf("%w: %s", err, firstLine(s.errors.String()))
	}
	select {
	case answer := <-s.answers[id%slots]:
		return answer, nil
	case <-s.ended:
		return nil, fmt.Errorf("the server ended: %s", firstLine(s.errors.String()))
	case <-time.After(answerLimit):
		return nil, errors.New("no answer")
	}
}

// handshake opens a legacy session, as today's clients do.
func (s *stdioServer) handshake() error {
	if _, err := s.call(0, "initialize", initializeParams); err != nil {
		return err
	}
	return s.send([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"))
}

const initializeParams = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`

// stop closes the input, so that the server ends, and returns the resources that it
// used.
func (s *stdioServer) stop() (sample, error) {
	most := peak(s.cmd.Process.Pid)
	if err := s.in.Close(); err != nil {
		return sample{}, err
	}
	select {
	case <-s.ended:
	case <-time.After(10 * time.Second):
		if err := s.cmd.Process.Kill(); err != nil {
			return sample{}, err
		}
		<-s.ended
	}
	err := s.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return sample{}, err
	}
	return usage(s.cmd.ProcessState).withPeak(most), nil
}
