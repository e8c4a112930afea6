package mcpkittest

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"testing"
)

// relayEnv is the environment variable that makes the test program act as the
// mock's child process. Its value is SECRET@ADDRESS.
const relayEnv = "MCPKITTEST_MOCK"

// Command returns the command line and the environment of a child process that
// acts as the mock: the test's own program, which only copies bytes between its
// streams and the mock in the test. The test's TestMain must first call
// MockChild.
func (m *Mock) Command(t testing.TB) (command, env []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatalf("mock: %v", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("mock: %v", err)
	}
	secret := rand.Text()
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer conn.Close()                                      //nolint:errcheck // nothing is lost
				defer context.AfterFunc(ctx, func() { conn.Close() })() //nolint:errcheck // the same
				given := make([]byte, len(secret))
				if _, err := io.ReadFull(conn, given); err == nil && string(given) == secret {
					m.Serve(ctx, conn, conn) //nolint:errcheck // the child's status says it
				}
			})
		}
	})
	t.Cleanup(func() {
		cancel()
		listener.Close() //nolint:errcheck // it only accepts
		work.Wait()
	})
	// A program built with -race would wait a second before it exits.
	return []string{self}, append(os.Environ(), "GORACE=atexit_sleep_ms=0", relayEnv+"="+secret+"@"+listener.Addr().String())
}

// MockChild must be called first in TestMain. In a process started by
// Mock.Command's command it acts as the mock and exits; in others it does
// nothing.
func MockChild() {
	where := os.Getenv(relayEnv)
	if where == "" {
		return
	}
	os.Exit(relay(where, os.Stdin, os.Stdout))
}

// relay copies bytes between the streams and the mock at address, and returns
// the exit status: 1 if the mock ended before the input, which means a crash.
func relay(address string, in io.Reader, out io.Writer) int {
	const secret = 26 // characters of rand.Text
	if len(address) <= secret {
		return 2
	}
	conn, err := net.Dial("tcp", address[secret+1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "mock:", err) //nolint:errcheck // nowhere else to say so
		return 2
	}
	if _, err := io.WriteString(conn, address[:secret]); err != nil {
		return 1
	}
	ended := make(chan struct{})
	go func() {
		io.Copy(conn, in)                //nolint:errcheck // the other side ends it
		close(ended)                     // before the mock can know
		conn.(*net.TCPConn).CloseWrite() //nolint:errcheck,forcetypeassert // it is one
	}()
	io.Copy(out, conn) //nolint:errcheck // the end is the end
	select {
	case <-ended:
		return 0
	default:
		return 1
	}
}
