package textfmt

import (
	"fmt"
	"strconv"
	"time"
)

// Duration formats d for a table, with about three digits and its unit:
// "85 µs", "4.9 ms", "340 ms", "1.2 s", "3m20s".
func Duration(d time.Duration) string {
	switch {
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d.Nanoseconds())
	case d < time.Millisecond-500*time.Nanosecond:
		return scaled(float64(d)/float64(time.Microsecond)) + " µs"
	case d < time.Second-500*time.Microsecond:
		return scaled(float64(d)/float64(time.Millisecond)) + " ms"
	case d < 2*time.Minute:
		return scaled(d.Seconds()) + " s"
	}
	return d.Round(time.Second).String()
}

// Bytes formats a number of bytes in binary units: "0 B", "999 B", "12 KiB",
// "1.3 MiB".
func Bytes(n int64) string {
	value, unit := float64(n), 0
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	for value >= 1023.5 {
		value, unit = value/1024, unit+1
	}
	if unit == 0 {
		return strconv.FormatInt(n, 10) + " B"
	}
	return scaled(value) + " " + units[unit]
}

// ShortBytes formats a number of bytes, which must not be negative, in at most five
// characters, as in a listing: "999B", "1.2K", "340M". Units are powers of 1024.
func ShortBytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%dB", n)
	}
	size := float64(n)
	unit := -1
	for size >= 1023.5 && unit < 5 {
		size /= 1024
		unit++
	}
	return scaled(size) + "KMGTPE"[unit:unit+1]
}

// Number formats a count in decimal multiples: "999", "12 k", "1.3 M".
func Number(n int64) string {
	value, unit := float64(n), 0
	units := []string{"", " k", " M", " G", " T", " P", " E"}
	for value >= 999.5 {
		value, unit = value/1000, unit+1
	}
	if unit == 0 {
		return strconv.FormatInt(n, 10)
	}
	return scaled(value) + units[unit]
}

// scaled formats a value with one decimal below 10 and none above.
func scaled(value float64) string {
	if value < 9.95 {
		return strconv.FormatFloat(value, 'f', 1, 64)
	}
	return strconv.FormatFloat(value, 'f', 0, 64)
}
