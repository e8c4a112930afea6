package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/egress"
)

// netFlag is the value of --net.
type netFlag egress.Net

func (r *netFlag) String() string { return egress.Net(*r).String() }

func (r *netFlag) Set(value string) error {
	parsed, err := egress.ParseNet(value)
	*r = netFlag(parsed)
	return err
}

// repeatedFlag is the value of a flag that may be repeated.
type repeatedFlag []string

func (l *repeatedFlag) String() string { return strings.Join(*l, " ") }

func (l *repeatedFlag) Set(value string) error {
	if strings.TrimSpace(value) == "" {
		return errors.New("the value is empty: give one, or leave the flag out")
	}
	*l = append(*l, value)
	return nil
}

// repeatedPathFlag is the value of a repeated flag for paths. Relative paths are made
// absolute.
type repeatedPathFlag []string

func (d *repeatedPathFlag) String() string { return strings.Join(*d, " ") }

// Set appends one path. On an error it appends nothing.
func (d *repeatedPathFlag) Set(value string) error {
	if value == "" {
		return errors.New("the value is empty: give one, or leave the flag out")
	}
	abs, err := filepath.Abs(value)
	if err != nil {
		return err
	}
	*d = append(*d, abs)
	return nil
}

// sizeFlag is the value of a flag for a number of bytes, written with K, M or G
// for powers of 1024.
type sizeFlag int64

// String returns the size in its largest whole unit ("16M"), "" for 0.
func (s *sizeFlag) String() string {
	if s == nil || *s == 0 {
		return ""
	}
	for _, unit := range []struct {
		bytes sizeFlag
		name  string
	}{{1 << 30, "G"}, {1 << 20, "M"}, {1 << 10, "K"}} {
		if *s%unit.bytes == 0 {
			return fmt.Sprintf("%d%s", *s/unit.bytes, unit.name)
		}
	}
	return fmt.Sprint(int64(*s))
}

// Set parses a number of bytes, or a number with K, M or G (powers of 1024).
func (s *sizeFlag) Set(text string) error {
	var n int64
	var unit string
	if parts, _ := fmt.Sscanf(text, "%d%s", &n, &unit); parts == 0 || n < 0 || n > 1<<33 {
		return fmt.Errorf("invalid size %q: give bytes, or a number with K, M or G", text)
	}
	shift, ok := map[string]int{"": 0, "K": 10, "M": 20, "G": 30}[strings.TrimSuffix(strings.ToUpper(unit), "B")]
	if !ok || n > 1<<62>>shift {
		return fmt.Errorf("invalid size %q: give bytes, or a number with K, M or G", text)
	}
	*s = sizeFlag(n << shift)
	return nil
}
