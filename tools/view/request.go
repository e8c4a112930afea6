package main

import (
	"context"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// request is a validated request for one file.
type request struct {
	name          string            // path as given
	offset, limit int64             // offset and limit are in lines, or in pages or bytes by the kind of file. 0: not given.
	tail          int64             // number of last lines or bytes; 0: not given
	section       string            // heading or symbol; "": not given
	hex           bool              // show bytes in hexadecimal
	encoding      textfile.Encoding // "": not given
	metadata      bool              // show only the metadata
	pages         span              // of a PDF; zero value: not given
	budget        int               // bytes of text for the answer
}

// newRequests validates the arguments and returns a request for each file. It returns
// MISSING_PARAMETER without a file, BAD_ENCODING for an unknown encoding, and
// INVALID_PARAMS for arguments that are malformed or cannot be combined.
func newRequests(ctx context.Context, args arguments) ([]request, error) {
	if args.Command != "" && args.Command != "view" {
		return nil, toolerr.New(toolerr.InvalidParams, "view only reads files: for command %s use edit or replace", pathname.Escape(args.Command))
	}
	if err := args.setOffsetLimit(ctx, &args.Offset, &args.Limit); err != nil {
		return nil, err
	}
	for i := range args.Paths {
		if err := args.Paths[i].setOffsetLimit(ctx, &args.Paths[i].Offset, &args.Paths[i].Limit); err != nil {
			return nil, err
		}
	}
	all := request{hex: args.Hex, metadata: args.Metadata}
	if args.Encoding != "" {
		e, err := textfile.ParseEncoding(args.Encoding)
		if err != nil {
			return nil, err
		}
		all.encoding = e
	}
	if hasValue(args.Pages) {
		s, err := parsePages(args.Pages)
		if err != nil {
			return nil, err
		}
		all.pages = s
	}
	var asks []request
	if args.FilePath != "" {
		a := all
		a.name, a.offset, a.limit, a.tail, a.section = args.FilePath, args.Offset, args.Limit, args.Tail, args.Section
		asks = append(asks, a)
	}
	for _, p := range args.Paths {
		a := all
		a.name, a.offset, a.limit = p.FilePath, p.Offset, p.Limit
		asks = append(asks, a)
	}
	switch {
	case len(asks) == 0:
		return nil, toolerr.New(toolerr.MissingParameter, "file_path is missing: name the file to read, or several in paths")
	case len(asks) > maxPaths:
		return nil, toolerr.New(toolerr.InvalidParams, "paths has %d files: one call takes at most %d", len(asks), maxPaths)
	case args.FilePath == "" && (args.Offset > 0 || args.Limit > 0 || args.Tail > 0 || args.Section != ""):
		return nil, toolerr.New(toolerr.InvalidParams, "offset, limit, tail and section apply to file_path: with paths, give offset and limit in each item")
	case args.Tail > 0 && args.Offset > 0:
		return nil, toolerr.New(toolerr.InvalidParams, "offset and tail cannot be combined: offset counts from the start, tail from the end")
	case args.Section != "" && (args.Tail > 0 || args.Offset > 0):
		return nil, toolerr.New(toolerr.InvalidParams, "section cannot be combined with offset or tail")
	}
	return asks, nil
}

// selectsPart reports whether only a part of the file was requested.
func (a request) selectsPart() bool {
	return a.offset > 0 || a.limit > 0 || a.tail > 0 || a.section != ""
}
