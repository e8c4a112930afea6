package textfmt_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
)

func TestDurationsHaveTheirUnit(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ns", 999: "999 ns", 85 * time.Microsecond: "85 µs", 4860 * time.Microsecond: "4.9 ms", 340 * time.Millisecond: "340 ms",
		999_400 * time.Nanosecond: "999 µs", 999_700 * time.Nanosecond: "1.0 ms", 999_700 * time.Microsecond: "1.0 s",
		1200 * time.Millisecond: "1.2 s", 9960 * time.Millisecond: "10 s", 119 * time.Second: "119 s", 200 * time.Second: "3m20s",
	} {
		require.Equal(t, want, textfmt.Duration(d), "%d", d)
	}
}

func TestBytesHaveTheirUnit(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 12 << 10: "12 KiB", 1<<20 - 1: "1.0 MiB", 1363149: "1.3 MiB", math.MaxInt64: "8.0 EiB",
	} {
		require.Equal(t, want, textfmt.Bytes(n), "%d", n)
	}
}

func TestNumbersHaveTheirMultiple(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1.0 k", 12_345: "12 k", 999_499: "999 k", 999_500: "1.0 M", 1_300_000: "1.3 M", math.MaxInt64: "9.2 E",
	} {
		require.Equal(t, want, textfmt.Number(n), "%d", n)
	}
}

func TestShortBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0B", 1023: "1023B", 1024: "1.0K", 1500: "1.5K", 10188: "9.9K", 10200: "10K", 1047552: "1023K", 1048100: "1.0M",
		1 << 20: "1.0M", 5 << 30: "5.0G", 1 << 40: "1.0T", 1<<63 - 1: "8.0E",
	} {
		require.Equal(t, want, textfmt.ShortBytes(n), n)
	}
}
