package supervise_test

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// fill sets every field to a different value, including fields that later
// versions add.
func fill(v reflect.Value, next *int) {
	*next++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), next)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range 3 {
			fill(v.Index(i), next)
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("caf\xe9/\xff\u00ff\\\"\n%d", *next))
	case reflect.Bool:
		v.SetBool(true)
	default:
		v.SetInt(int64(*next) - 7)
	}
}

func records() []supervise.Message {
	return []supervise.Message{&supervise.Spec{}, &supervise.ControlMessage{}, &supervise.Report{}}
}

// TestEveryFieldIsPassed: every field arrives unchanged, byte by byte.
func TestEveryFieldIsPassed(t *testing.T) {
	var line []byte
	var sent []supervise.Message
	for _, r := range records() {
		sent = append(sent, r)
		line = supervise.AppendMessage(line, r) // nothing set
	}
	for _, r := range records() {
		next := 0
		fill(reflect.ValueOf(r).Elem(), &next)
		sent = append(sent, r)
		line = supervise.AppendMessage(line, r)
	}
	in := bytes.NewReader(line)
	for _, want := range sent {
		got := reflect.New(reflect.TypeOf(want).Elem()).Interface().(supervise.Message)
		require.NoError(t, supervise.ReadMessage(in, got))
		require.Equal(t, want, got)
	}
	require.Equal(t, io.EOF, supervise.ReadMessage(in, &supervise.ControlMessage{}))
}

// TestOneIsSentSeveralTimes: several goroutines may encode the same record.
// The race detector checks that.
func TestOneIsSentSeveralTimes(t *testing.T) {
	for _, r := range records() {
		next := 0
		fill(reflect.ValueOf(r).Elem(), &next)
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { supervise.AppendMessage(nil, r) })
		}
		both.Wait()
	}
}

// Truncated or malformed data is an error, and allocates no more memory than
// the data received.
func TestBrokenRecords(t *testing.T) {
	for _, r := range records() {
		next := 0
		fill(reflect.ValueOf(r).Elem(), &next)
		line := supervise.AppendMessage(nil, r)
		for n := 1; n < len(line); n++ {
			got := reflect.New(reflect.TypeOf(r).Elem()).Interface().(supervise.Message)
			require.Error(t, supervise.ReadMessage(bytes.NewReader(line[:n]), got), "%d bytes", n)
			if size := n - 1; size < len(line)-4 {
				short := append([]byte{byte(size), byte(size >> 8), 0, 0}, line[4:]...)
				require.Error(t, supervise.ReadMessage(bytes.NewReader(short), got), "%d bytes, and said so", size)
			}
		}
	}
	require.Error(t, supervise.ReadMessage(bytes.NewReader([]byte{0, 0, 0, 0xff}), &supervise.ControlMessage{}))
	for _, text := range []string{"\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		line := append([]byte{byte(len(text)), 0, 0, 0}, text...)
		for _, r := range records() {
			require.Error(t, supervise.ReadMessage(bytes.NewReader(line), r))
		}
	}
}

func BenchmarkSpec(b *testing.B) {
	s := supervise.Spec{Argv: []string{"/bin/bash", "-c", "true"}, Dir: "/home/user/src"}
	for range 60 {
		s.Env = append(s.Env, "SOME_VARIABLE=some value of usual length")
		s.Mask = append(s.Mask, "/home/user/.config/some/credentials")
	}
	for b.Loop() {
		var got supervise.Spec
		require.NoError(b, supervise.ReadMessage(bytes.NewReader(supervise.AppendMessage(nil, &s)), &got))
	}
}
