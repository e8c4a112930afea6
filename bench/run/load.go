//go:build unix

package main

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// caller makes one call. Each id is used once, and id modulo slots identifies the
// worker.
type caller func(id int) error

// load makes total calls with a number of workers, each of which waits for its answer.
// It returns the time of each call and the calls per second.
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

// echoParams are the parameters of a call of echo with 64 bytes.
const echoParams = `{"name":"echo","arguments":{"text":"0123456789012345678901234567890123456789012345678901234567890123"}}`

// running is a server that can be called.
type running interface {
	call(id int, method, params string) ([]byte, error)
	stop() (sample, error)
}

// load starts a server, repeats the same call, and stops the server. The value is the
// median time in microseconds for one worker, else calls per second.
func (s start) load(method, params string, workers, total int) (sample, error) {
	server, err := s()
	if err != nil {
		return sample{}, err
	}
	value, err := loadValue(func(id int) error {
		_, err := server.call(id, method, params)
		return err
	}, workers, total)
	got, stopErr := server.stop()
	got.value = value
	return got, errors.Join(err, stopErr)
}

// withWarmUp returns the number of calls including the warm-up.
func withWarmUp(total int) int { return total + total/10 + 1 }

func stopped(s running) error {
	_, err := s.stop()
	return err
}

// loadValue makes the warm-up calls, then measures.
func loadValue(call caller, workers, total int) (float64, error) {
	// The ids of the warm-up are higher than all others of their slot.
	if _, _, err := load(func(id int) error { return call(id + slots<<20) }, workers, withWarmUp(total)-total); err != nil {
		return 0, err
	}
	times, rate, err := load(call, workers, total)
	if workers == 1 {
		return float64(percentile(times, 0.5)) / float64(time.Microsecond), err
	}
	return rate, err
}
