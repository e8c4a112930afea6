//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// httpServer is a running streamable HTTP server.
type httpServer struct {
	cmd     *exec.Cmd
	client  *http.Client
	url     string
	token   string
	session string
	errors  bytes.Buffer
}

// freePort returns a port that is free now.
func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, errors.Join(err, listener.Close())
}

// startHTTP starts a command that serves /mcp on a port of 127.0.0.1. It opens a
// legacy session, and retries until the command listens.
func startHTTP(command []string, port, token string) (*httpServer, error) {
	s := &httpServer{
		cmd: exec.Command(command[0], command[1:]...), url: "http://127.0.0.1:" + port + "/mcp", token: token,
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * slots}, Timeout: answerLimit},
	}
	s.cmd.Env = append(os.Environ(), "TOOLROOM_TOKEN="+token)
	s.cmd.Stderr = &s.errors
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		_, err := s.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":%s}`, initializeParams))
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			_, stopErr := s.stop()
			return nil, errors.Join(fmt.Errorf("no answer at /mcp: %w: %s", err, firstLine(s.errors.String())), stopErr)
		}
		time.Sleep(20 * time.Millisecond)
	}
	_, err := s.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s, err
}

// another opens a second session with the same server.
func (s *httpServer) another() (*httpServer, error) {
	other := &httpServer{client: s.client, url: s.url, token: s.token}
	if _, err := other.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":%s}`, initializeParams)); err != nil {
		return nil, err
	}
	_, err := other.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return other, err
}

// call sends one request and returns its answer.
func (s *httpServer) call(id int, method, params string) ([]byte, error) {
	return s.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params))
}

// post sends one message and returns its whole answer.
func (s *httpServer) post(body string) ([]byte, error) {
	request, err := http.NewRequest(http.MethodPost, s.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("MCP-Protocol-Version", "2025-11-25")
	if s.token != "" {
		request.Header.Set("Authorization", "Bearer "+s.token)
	}
	if s.session != "" {
		request.Header.Set("Mcp-Session-Id", s.session)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 || bytes.Contains(answer, []byte(`"error":{`)) || bytes.Contains(answer, []byte(`"isError":true`)) {
		return nil, fmt.Errorf("%s: %.300s", response.Status, answer)
	}
	if id := response.Header.Get("Mcp-Session-Id"); id != "" && s.session == "" {
		s.session = id
	}
	return answer, nil
}

func (s *httpServer) stop() (sample, error) {
	most := peak(s.cmd.Process.Pid)
	s.client.CloseIdleConnections()
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		return sample{}, err
	}
	timer := time.AfterFunc(10*time.Second, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	err := s.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return sample{}, err
	}
	return usage(s.cmd.ProcessState).withPeak(most), nil
}
