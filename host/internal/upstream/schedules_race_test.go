//go:build race

package upstream_test

// schedules are fewer where each takes five times as long.
const schedules = 2_000
