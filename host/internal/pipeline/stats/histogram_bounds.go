package stats

import "time"

// The bounds of a Series: from 128 µs to 67 s, each twice the one before, so that they
// coincide with borders of classes.
const firstBound, lastBound = 7, 26

// Bounds returns the durations for Series.Within.
func Bounds() []time.Duration {
	var bounds []time.Duration
	for k := firstBound; k <= lastBound; k++ {
		bounds = append(bounds, time.Microsecond<<k)
	}
	return bounds
}
