//go:build !race

package upstream_test

const schedules = 10_000
