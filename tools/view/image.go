package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"runtime/debug"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const (
	// keepMemory is the size of a decoded image up to which freed memory is
	// left to the garbage collector; for larger images it is returned to
	// the system at once.
	keepMemory = 16 << 20
)

// imageSlot allows decoding one image at a time, so that the memory of
// concurrent calls does not add up.
var imageSlot = make(chan struct{}, 1)

// picture is an image ready to be sent.
type picture struct {
	Data   []byte // the encoded image
	MIME   string // media type of Data
	Format string // format of the file: png, jpeg, gif, webp, bmp, tiff
	// Width and Height are the file's, SentWidth and SentHeight those of
	// Data.
	Width, Height         int
	SentWidth, SentHeight int
	// Note says what is missing in Data ("first frame of an animation"), or
	// is empty.
	Note string
}

// loadImage reads the image in r and prepares it for sending: at most
// maxImageSide on its long side and maxImageBytes encoded. An image within
// these limits is sent unchanged, after decoding it as a check: with a damaged
// image, a model's API rejects the whole conversation. It returns TOO_LARGE for
// an image over the limits of decoding, and BINARY_FILE for a damaged image.
func loadImage(ctx context.Context, r io.ReaderAt, size int64, format string) (pic *picture, err error) {
	if size > maxImageFile {
		return nil, toolerr.New(toolerr.TooLarge, "the %s image has %d bytes, more than the limit of %d", format, size, maxImageFile)
	}
	select {
	case imageSlot <- struct{}{}:
		defer func() { <-imageSlot }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() {
		// The decoders are fuzzed upstream, but the file may be
		// hostile.
		if recover() != nil {
			pic, err = nil, damagedImageError(format, "its decoder failed")
		}
	}()
	data := make([]byte, size)
	n, err := r.ReadAt(data, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	return prepareImage(ctx, data[:n], format)
}

// damagedImageError returns the error for an image that cannot be decoded,
// BINARY_FILE.
func damagedImageError(format, why string) error {
	return toolerr.New(toolerr.BinaryFile, "the %s image cannot be decoded: %s; use hex=true to see its bytes", format, why)
}

// prepareImage prepares an image in memory for sending. It returns the errors of
// loadImage.
func prepareImage(ctx context.Context, data []byte, format string) (*picture, error) {
	source := data
	pic := &picture{Format: format, MIME: "image/" + format}
	if format == "webp" {
		if still, ok := firstWebPFrame(data); ok {
			source, pic.Note = still, "first frame of an animation"
		}
	}
	if format == "gif" && isAnimatedGIF(data) {
		pic.Note = "first frame of an animation"
	}
	config, err := imageDecoders[format].decodeHeader(bytes.NewReader(source))
	if err != nil {
		return nil, damagedImageError(format, err.Error())
	}
	cost := maxDecodedSize(config, source, format)
	if cost > maxDecodedBytes {
		return nil, toolerr.New(toolerr.TooLarge,
			"the %s image has %d×%d pixels, more than view decodes (%d MiB in memory): scale it down with another program first",
			format, config.Width, config.Height, maxDecodedBytes>>20)
	}
	if cost > keepMemory {
		defer debug.FreeOSMemory()
	}
	img, err := imageDecoders[format].decode(&contextReader{ctx, bytes.NewReader(source)})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, damagedImageError(format, err.Error())
	}
	turn := 1
	if format == "jpeg" {
		turn = readJPEGHeader(data).orientation
	}
	pic.Width, pic.Height = orientedSize(img.Bounds().Dx(), img.Bounds().Dy(), turn)
	if pic.Note == "" && turn == 1 && isAcceptedByModels(format) && len(data) <= maxImageBytes && max(pic.Width, pic.Height) <= maxImageSide {
		pic.Data, pic.SentWidth, pic.SentHeight = data, pic.Width, pic.Height
		return pic, nil
	}
	if err := encodeToFit(ctx, pic, img, turn); err != nil {
		return nil, err
	}
	return pic, nil
}

// encodeToFit encodes img into pic.Data: as PNG if that is small enough and the
// source was not a JPEG, otherwise as JPEG of decreasing quality, then of
// decreasing size. This keeps text in screenshots as sharp as possible. orientation is
// the EXIF orientation of img. It returns TOO_LARGE if no size fits, and ctx's error.
func encodeToFit(ctx context.Context, pic *picture, img image.Image, orientation int) error {
	scaled := orientImage(scaleDown(ctx, img, maxImageSide), orientation)
	if err := ctx.Err(); err != nil {
		return err
	}
	if pic.Format != "jpeg" {
		if fits, err := encodeIfSmall(pic, scaled, "image/png", png.Encode); fits || err != nil {
			return err
		}
	}
	for side := maxImageSide; side >= 64; side = side * 3 / 4 {
		scaled = scaleDown(ctx, scaled, side)
		for _, quality := range []int{88, 75, 60} {
			if err := ctx.Err(); err != nil {
				return err
			}
			fits, err := encodeIfSmall(pic, onWhite(scaled), "image/jpeg", func(w io.Writer, img image.Image) error {
				return jpeg.Encode(w, img, &jpeg.Options{Quality: quality})
			})
			if fits || err != nil {
				return err
			}
		}
	}
	return toolerr.New(toolerr.TooLarge, "the image does not fit into %d bytes at any size", maxImageBytes)
}

// encodeIfSmall encodes img into pic. It returns false and leaves pic unchanged
// if the result is larger than maxImageBytes.
func encodeIfSmall(pic *picture, img image.Image, mime string, encode func(io.Writer, image.Image) error) (fits bool, err error) {
	var out bytes.Buffer
	if err := encode(&out, img); err != nil || out.Len() > maxImageBytes {
		return false, err
	}
	pic.Data, pic.MIME = out.Bytes(), mime
	pic.SentWidth, pic.SentHeight = img.Bounds().Dx(), img.Bounds().Dy()
	return true, nil
}

// contextReader returns the context's error after its end, which stops a
// decoder.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// viewImage shows an image file as an image. It returns the errors of loadImage.
func (f *viewedFile) viewImage(ctx context.Context, format string) (*answer, error) {
	pic, err := loadImage(ctx, f, f.Stat.Size, format)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.shownPath, err)
	}
	text := fmt.Sprintf("%s  image %s  %d x %d  %d bytes  %s\n", f.shownPath, pic.Format, pic.Width, pic.Height, f.Stat.Size, f.headerTag())
	if pic.SentWidth != pic.Width || pic.SentHeight != pic.Height {
		text += fmt.Sprintf("note: shown scaled to %d x %d\n", pic.SentWidth, pic.SentHeight)
	}
	if pic.Note != "" {
		text += "note: " + pic.Note + "\n"
	}
	return &answer{text: text, images: []mcpkit.Image{{Data: pic.Data, MIME: pic.MIME}}, meta: f.newMeta("image")}, nil
}
