package main

import (
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Config holds the settings of the flags.
type Config struct {
	Timeout     time.Duration // after which a call returns partial results
	MaxFileSize int64         // bytes; larger files are counted, not searched
	IndexSize   int64         // bytes of memory that the index may take; 0: no index
	NoIndex     bool          // no index: every call reads every file
}

// DefaultConfig returns the settings used without flags.
func DefaultConfig() Config {
	return Config{Timeout: 20 * time.Second, MaxFileSize: 64 << 20, IndexSize: 128 << 20}
}

// AddFlags registers the flags that set c.
func (c *Config) AddFlags(flags *flag.FlagSet) {
	flags.DurationVar(&c.Timeout, "timeout", c.Timeout, "return partial results after `TIME`")
	flags.Var((*sizeFlag)(&c.MaxFileSize), "max-file-size", "skip files larger than `SIZE` (a number of bytes, or with a unit: 64M, 1G), unless path names them")
	flags.Var((*sizeFlag)(&c.IndexSize), "index-size", "keep a search index of at most `SIZE` (a number of bytes, or with a unit: 64M, 1G), so that later calls read fewer files")
	flags.BoolVar(&c.NoIndex, "no-index", c.NoIndex, "keep no index; each call reads every file")
}

// Validate returns INVALID_PARAMS for the first setting that cannot work.
func (c *Config) Validate() error {
	switch {
	case c.Timeout <= 0:
		return toolerr.New(toolerr.InvalidParams, "--timeout must be more than zero")
	case c.MaxFileSize <= 0 || c.MaxFileSize > math.MaxInt32:
		return toolerr.New(toolerr.InvalidParams, "--max-file-size must be more than zero and below 2G")
	case c.IndexSize < 0:
		return toolerr.New(toolerr.InvalidParams, "--index-size must not be negative")
	}
	return nil
}

// sizeFlag is the value of a flag for a number of bytes, written with K, M or G
// for powers of 1024.
type sizeFlag int64

// String returns the size in its largest whole unit, such as "16M".
func (s *sizeFlag) String() string {
	n := int64(*s)
	for _, unit := range []struct {
		shift int
		name  string
	}{{30, "G"}, {20, "M"}, {10, "K"}} {
		if n != 0 && n%(1<<unit.shift) == 0 {
			return strconv.FormatInt(n>>unit.shift, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// Set parses a number of bytes, or a number with K, M or G (powers of 1024).
func (s *sizeFlag) Set(text string) error {
	number := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(text), "B"), "I")
	shift := 0
	for i, unit := range "KMG" {
		if rest, ok := strings.CutSuffix(number, string(unit)); ok {
			number, shift = rest, 10*(i+1)
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64>>shift {
		return fmt.Errorf("invalid size %q: give bytes, or a number with K, M or G", text)
	}
	*s = sizeFlag(n << shift)
	return nil
}
