package main

import (
	"bytes"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"
)

// imageFormat returns the image format according to the first bytes of a file:
// a key of imageDecoders, or "" for other files. It needs at most 16 bytes.
func imageFormat(head []byte) string {
	has := func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }
	switch {
	case has("\x89PNG\r\n\x1a\n"):
		return "png"
	case has("\xff\xd8\xff"):
		return "jpeg"
	case has("GIF87a"), has("GIF89a"):
		return "gif"
	case has("RIFF") && len(head) >= 12 && string(head[8:12]) == "WEBP":
		return "webp"
	case has("II*\x00"), has("MM\x00*"):
		return "tiff"
	case has("BM") && isBMP(head):
		return "bmp"
	}
	return ""
}

// isBMP reports whether head, which begins with "BM", is the beginning of a BMP image. A
// text may begin with these letters, too, so the reserved bytes must be zero and the
// header must have a known size.
func isBMP(head []byte) bool {
	if len(head) < 16 || head[6]|head[7]|head[8]|head[9] != 0 || head[15] != 0 {
		return false
	}
	switch head[14] {
	case 12, 40, 52, 56, 64, 108, 124:
		return true
	}
	return false
}

// isAcceptedByModels reports whether vision models accept the format.
func isAcceptedByModels(format string) bool {
	switch format {
	case "png", "jpeg", "gif", "webp":
		return true
	}
	return false
}

// imageDecoder decodes an image format.
type imageDecoder struct {
	decodeHeader func(io.Reader) (image.Config, error) // reads no pixels
	decode       func(io.Reader) (image.Image, error)
}

// imageDecoders are the decoders by format.
var imageDecoders = map[string]imageDecoder{
	"png":  {png.DecodeConfig, png.Decode},
	"jpeg": {jpeg.DecodeConfig, jpeg.Decode},
	"gif":  {gif.DecodeConfig, gif.Decode}, // Decode stops after the first frame
	"webp": {webp.DecodeConfig, webp.Decode},
	"bmp":  {bmp.DecodeConfig, bmp.Decode},
	"tiff": {tiff.DecodeConfig, tiff.Decode},
}
