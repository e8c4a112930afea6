package textfile

import (
	"bytes"
	"context"
	"io"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Options configures a scan. The zero value detects everything.
type Options struct {
	Encoding Encoding         // encoding of the file; "": detect it
	Progress func(done int64) // called from time to time, by several goroutines, with the number of bytes read

	// KeepFacts stores data in the Index that makes another scan cheaper: a
	// scan with this Index as Previous, of content whose first SamePrefix bytes
	// are the same.
	KeepFacts  bool
	Previous   *Index
	SamePrefix int64
}

// maxStarts bounds the entries of a line index; a larger file has longer
// strides.
const maxStarts = 8192

// maxWorkers bounds a scan's memory, one chunk for each worker. With more
// workers they would only wait for memory.
const maxWorkers = 4

// Scan reads the first size bytes of r once and returns their index. It ignores
// later bytes, as in a growing file. It returns ErrChanged if the file has
// become shorter, and the cause of ctx if ctx ends.
func Scan(ctx context.Context, r io.ReaderAt, size int64, o Options) (*Index, error) {
	head, err := readBlock(r, make([]byte, min(size, HeadSize)), 0, size)
	if err != nil {
		return nil, err
	}
	e, bom := detectBOM(head)
	if bom == 0 {
		e = guessUTF16(head)
	}
	if o.Encoding != "" {
		if !(e.IsUTF16() && o.Encoding.IsUTF16() && bom > 0) && e != o.Encoding {
			e, bom = o.Encoding, 0
		}
	}
	s := &scan{r: r, size: size, encoding: e, progress: o.Progress, samples: map[int64][]byte{}}
	s.chunks = make([]chunk, (size+ChunkSize-1)/ChunkSize)
	if o.KeepFacts {
		s.kept = make([]byteFacts, len(s.chunks))
	}
	if o.Previous != nil && o.Previous.kept.encoding == e {
		s.previousFacts, s.samePrefix = o.Previous.kept.facts, o.SamePrefix
	}
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	j := detection{head: head, encoding: e, bom: bom, size: size, byteFacts: s.total, sample: s.sample()}
	x := &Index{Format: j.format(), Size: size}
	if o.KeepFacts {
		x.kept = keptFacts{e, s.kept}
	}
	if o.Encoding != "" {
		x.Format = formatForEncoding(e, bom, s.total)
	}
	x.Etag = combineHashes(s.hashes(), size)
	s.fillLineIndex(x)
	return x, x.countUnterminatedLine(r)
}

// formatForEncoding returns the format of a file that is read in a given
// encoding.
func formatForEncoding(e Encoding, bom int, f byteFacts) Format {
	format := Format{Encoding: e, BOM: bom, Ending: endingOf(f), NUL: f.nul}
	if e == UTF8 {
		format.Invalid = f.invalid
	}
	return format
}

// chunk is the record of a chunk of 256 KiB during a scan: 16 bytes.
type chunk struct {
	hash   uint64
	lf, cr int32 // as in byteFacts
}

// scan is the state of one Scan, which several workers share.
type scan struct {
	r        io.ReaderAt
	size     int64
	encoding Encoding
	progress func(int64)

	chunks        []chunk
	next          atomic.Int64
	kept          []byteFacts // of each chunk; nil: not requested
	previousFacts []byteFacts // of the chunks of the previous content
	samePrefix    int64       // number of leading bytes that both contents share

	mu      sync.Mutex
	total   byteFacts
	samples map[int64][]byte // by chunk, of the first few chunks with a sample
	done    int64
	err     error
}

// run scans all chunks, with several workers if there are enough chunks.
func (s *scan) run(ctx context.Context) error {
	workers := min(runtime.GOMAXPROCS(0), maxWorkers, len(s.chunks)/4+1)
	var group sync.WaitGroup
	for range workers - 1 {
		group.Go(func() { s.runWorker(ctx) })
	}
	s.runWorker(ctx)
	group.Wait()
	return s.err
}

// runWorker scans chunks until none are left, ctx ends, or a worker has an
// error.
func (s *scan) runWorker(ctx context.Context) {
	buf := make([]byte, chunkBufferOffset+min(s.size, ChunkSize)+contextBytes)
	for {
		i := s.next.Add(1) - 1
		if i >= int64(len(s.chunks)) {
			return
		}
		f, err := s.scanChunk(i, buf)
		if err == nil {
			err = context.Cause(ctx)
		}
		s.mu.Lock()
		if s.err == nil {
			s.err = err
		}
		s.total.add(f)
		s.done += ChunkSize
		done, stop := s.done, s.err != nil
		s.mu.Unlock()
		if stop {
			return
		}
		if s.progress != nil && i%64 == 63 {
			s.progress(min(done, s.size))
		}
	}
}

// chunkBufferOffset is the offset in a worker's buffer at which a chunk is
// read. The kernel copies four times slower if source and destination have
// different offsets in a cache line, so the bytes before the chunk are read
// separately.
const chunkBufferOffset = 64

// scanChunk returns the facts of chunk i and stores what the index needs of
// them. If the chunk is known to be unchanged since the previous scan, it does
// not read it.
func (s *scan) scanChunk(i int64, buf []byte) (byteFacts, error) {
	start := i * ChunkSize
	end := min(start+ChunkSize, s.size)
	if i < int64(len(s.previousFacts)) && end+contextBytes <= s.samePrefix && s.previousFacts[i].invalid == 0 {
		s.storeFacts(i, s.previousFacts[i])
		return s.previousFacts[i], nil
	}
	part, from, err := s.readChunk(start, buf)
	if err != nil {
		return byteFacts{}, err
	}
	to := from + int(end-start)
	var f byteFacts
	if s.encoding.IsUTF16() {
		f = computeUTF16Facts(part, from, to, s.encoding)
	} else {
		f = computeFacts(part, from, to)
	}
	s.storeFacts(i, f)
	if f.invalid > 0 {
		s.keepSample(i, part[f.sampleAt:min(f.sampleAt+sampleSize, len(part))])
	}
	return f, nil
}

// storeFacts stores what is needed of the facts of chunk i.
func (s *scan) storeFacts(i int64, f byteFacts) {
	s.chunks[i] = chunk{hash: f.hash, lf: int32(f.lf), cr: int32(f.cr)}
	if s.kept != nil {
		s.kept[i] = f
	}
}

// Slicer is implemented by readers whose content is in memory: Slice returns n
// bytes at off, or nil if they are not contiguous. The caller must not change
// them.
type Slicer interface {
	Slice(off int64, n int) []byte
}

// readChunk returns the chunk at offset start, with from bytes of the previous
// chunk before it and some bytes of the next after it.
func (s *scan) readChunk(start int64, buf []byte) (part []byte, from int, err error) {
	if start > 0 {
		from = contextBytes
	}
	if in, ok := s.r.(Slicer); ok {
		at := start - int64(from)
		if part := in.Slice(at, int(min(start+ChunkSize+contextBytes, s.size)-at)); part != nil {
			return part, from, nil
		}
	}
	part, err = readBlock(s.r, buf[chunkBufferOffset:], start, s.size)
	if err == nil && from > 0 {
		_, err = readBlock(s.r, buf[chunkBufferOffset-from:chunkBufferOffset], start-int64(from), s.size)
	}
	return buf[chunkBufferOffset-from : chunkBufferOffset+len(part)], from, err
}

// keepSample stores the sample of chunk i, and drops that of the last chunk if
// there are too many. So the samples of the first chunks remain, in whatever
// order the workers deliver them.
func (s *scan) keepSample(i int64, sample []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples[i] = bytes.Clone(sample)
	if len(s.samples)*sampleSize > sampleLimit {
		delete(s.samples, slices.Max(slices.Collect(maps.Keys(s.samples))))
	}
}

// sample returns the stored samples in order, separated by line feeds.
func (s *scan) sample() []byte {
	var all [][]byte
	for _, i := range slices.Sorted(maps.Keys(s.samples)) {
		all = append(all, s.samples[i])
	}
	return bytes.Join(all, []byte{'\n'})
}

// hashes returns the hashes of all chunks, in order.
func (s *scan) hashes() []uint64 {
	sums := make([]uint64, len(s.chunks), len(s.chunks)+1)
	for i, c := range s.chunks {
		sums[i] = c.hash
	}
	return sums
}

// fillLineIndex sets the line index of x, and Lines to the number of line
// endings.
func (s *scan) fillLineIndex(x *Index) {
	every := (len(s.chunks) + maxStarts - 1) / maxStarts
	x.Stride = int64(max(every, 1)) * ChunkSize
	for i, c := range s.chunks {
		if len(s.chunks) > 1 && i%every == 0 {
			x.LinesBefore = append(x.LinesBefore, x.Lines)
		}
		if x.Ending == CR {
			x.Lines += int64(c.cr)
		} else {
			x.Lines += int64(c.lf)
		}
	}
}

// countUnterminatedLine completes Lines and Final: it adds a last line without an
// ending to Lines, or sets Final if the last line has one. An empty file has
// neither. It returns the error of reading r.
func (x *Index) countUnterminatedLine(r io.ReaderAt) error {
	if x.Size <= int64(x.BOM) {
		return nil
	}
	from := max(int64(x.BOM), (x.Size-2)&^1)
	tail, err := readBlock(r, make([]byte, 4), from, x.Size)
	if err != nil {
		return err
	}
	for e := x.lineEnds(); len(tail) > 0; {
		n := e.afterNext(tail)
		if n < 0 {
			x.Lines++
			return nil
		}
		tail = tail[n:]
	}
	x.Final = true
	return nil
}
