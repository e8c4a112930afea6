//go:build unix

package main

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// caller makes one call; id is never used twice, and id modulo slots belongs
// to one worker.
type caller func(id int) error

// load makes total calls with so many workers in a closed loop and returns
// each call's time and the rate over all.
func load(call caller, workers, total int) (times []time.Duration, rate float64, err error) {
	var next atomic.Int64
	all := make([][]time.Duration, workers)
	faults := make([]error, workers)
	var group sync.WaitGroup
	start := time.Now()
	for worker := range workers {
		group.Go(func() {
			for round := 1; next.Add(1) <= int64(total); round++ {
				began := time.Now()
				if err := call(round*slots + worker); err != nil {
					faults[worker] = err
					return
				}
				all[worker] = append(all[worker], time.Since(began))
			}
		})
	}
	group.Wait()
	took := time.Since(start)
	for _, part := range all {
		times = append(times, part...)
	}
	return times, float64(len(times)) / took.Seconds(), errors.Join(faults...)
}

// echoParams is a call of the fixture tool with 64 bytes.
const echoParams = `{"name":"echo","arguments":{"text":"0123456789012345678901234567890123456789012345678901234567890123"}}`

// stdioLoad starts a server, makes echo calls and stops it. The value is the
// median time in microseconds with one worker, else calls a second.
func stdioLoad(command []string, tool string, workers, total int) (sample, error) {
	server, err := startStdio(command)
	if err != nil {
		return sample{}, err
	}
	if err := server.handshake(); err != nil {
		return sample{}, errors.Join(err, stopped(server))
	}
	params := echoParams
	if tool != "" {
		params = `{"name":"` + tool + echoParams[len(`{"name":"echo`):]
	}
	value, err := loadValue(func(id int) error {
		_, err := server.call(id, "tools/call", params)
		return err
	}, workers, total)
	got, stopErr := server.stop()
	got.value = value
	return got, errors.Join(err, stopErr)
}

func stopped(s *stdioServer) error {
	_, err := s.stop()
	return err
}

// loadValue warms up, then measures.
func loadValue(call caller, workers, total int) (float64, error) {
	// The warm-up's ids lie above all others of their slot.
	if _, _, err := load(func(id int) error { return call(id + slots<<20) }, workers, total/10+1); err != nil {
		return 0, err
	}
	times, rate, err := load(call, workers, total)
	if workers == 1 {
		return float64(percentile(times, 0.5)) / float64(time.Microsecond), err
	}
	return rate, err
}
