package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/egress"
)

// reach is the value of --net.
type reach egress.Net

func (r *reach) String() string { return egress.Net(*r).String() }

func (r *reach) Set(value string) error {
	parsed, err := egress.ParseNet(value)
	*r = reach(parsed)
	return err
}

// list is the value of a flag that may be repeated.
type list []string

func (l *list) String() string { return strings.Join(*l, " ") }

func (l *list) Set(value string) error {
	if strings.TrimSpace(value) == "" {
		return fmt.Errorf("empty")
	}
	*l = append(*l, value)
	return nil
}

// dirs is a list of absolute paths of directories or other files.
type dirs []string

func (d *dirs) String() string { return strings.Join(*d, " ") }

func (d *dirs) Set(value string) error {
	if value == "" {
		return fmt.Errorf("empty")
	}
	abs, err := filepath.Abs(value)
	*d = append(*d, abs)
	return err
}

// size is a number of bytes, written with K, M or G for powers of 1024.
type size int64

func (s *size) String() string {
	if s == nil || *s == 0 {
		return ""
	}
	for _, unit := range []struct {
		bytes size
		name  string
	}{{1 << 30, "G"}, {1 << 20, "M"}, {1 << 10, "K"}} {
		if *s%unit.bytes == 0 {
			return fmt.Sprintf("%d%s", *s/unit.bytes, unit.name)
		}
	}
	return fmt.Sprint(int64(*s))
}

func (s *size) Set(text string) error {
	var n int64
	var unit string
	if parts, _ := fmt.Sscanf(text, "%d%s", &n, &unit); parts == 0 || n < 0 || n > 1<<33 {
		return fmt.Errorf("%q is no size: give bytes, or a number with K, M or G", text)
	}
	shift, ok := map[string]int{"": 0, "K": 10, "M": 20, "G": 30}[strings.TrimSuffix(strings.ToUpper(unit), "B")]
	if !ok || n > 1<<62>>shift {
		return fmt.Errorf("%q is no size: give bytes, or a number with K, M or G", text)
	}
	*s = size(n << shift)
	return nil
}
