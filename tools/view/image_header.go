package main

import (
	"encoding/binary"
	"image"
	"image/color"
	"math"
)

// maxDecodedSize returns an upper bound of the memory for decoding an image, in
// bytes, from its headers alone. For a progressive JPEG this includes the
// coefficients that its decoder keeps.
func maxDecodedSize(config image.Config, data []byte, format string) int64 {
	if config.Width <= 0 || config.Height <= 0 || config.Width > math.MaxInt32 || config.Height > math.MaxInt32 {
		return math.MaxInt64
	}
	pixels := int64(config.Width) * int64(config.Height)
	if pixels > maxDecodedBytes {
		return math.MaxInt64
	}
	perPixel := int64(4)
	switch config.ColorModel {
	case color.RGBA64Model, color.NRGBA64Model:
		perPixel = 8
	case color.Gray16Model:
		perPixel = 2
	case color.GrayModel:
		perPixel = 1
	}
	if _, ok := config.ColorModel.(color.Palette); ok {
		perPixel = 1
	}
	if format == "jpeg" {
		return pixels * readJPEGHeader(data).eighths / 8
	}
	return pixels * perPixel
}

// jpegHeader holds information from the segments before a JPEG's pixels: how to
// turn and decode it.
type jpegHeader struct {
	orientation int   // EXIF, 1 (upright) to 8
	eighths     int64 // memory for decoding, in eighths of a byte per pixel
}

// readJPEGHeader returns the orientation and the memory for decoding from the
// segments before the pixels, without decoding these. For missing or damaged
// segments it returns the defaults: upright, and the largest memory per pixel.
func readJPEGHeader(data []byte) jpegHeader {
	header := jpegHeader{orientation: 1, eighths: 8 * (4 + 4*4)}
	for pos := 2; pos+4 <= len(data); {
		if data[pos] != 0xff {
			return header
		}
		marker := data[pos+1]
		if marker == 0xff { // fill byte
			pos++
			continue
		}
		length := int(binary.BigEndian.Uint16(data[pos+2:]))
		if marker == 0xda || length < 2 || pos+2+length > len(data) {
			return header
		}
		body := data[pos+4 : pos+2+length]
		switch {
		case marker == 0xe1 && len(body) > 6 && string(body[:6]) == "Exif\x00\x00":
			header.orientation = exifOrientation(body[6:])
		case marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc:
			header.eighths = jpegPixelCost(body, marker == 0xc2)
		}
		pos += 2 + length
	}
	return header
}

// jpegPixelCost returns the decoding cost from a frame header, in eighths of a
// byte per pixel: one byte per sample, and four more if a progressive image
// keeps all coefficients until the end.
func jpegPixelCost(frame []byte, progressive bool) int64 {
	if len(frame) < 6 || len(frame) < 6+3*int(frame[5]) {
		return 8 * (4 + 4*4)
	}
	var widest, tallest, samples int64 = 1, 1, 0
	count := int(frame[5])
	for i := range count {
		widest = max(widest, int64(frame[7+3*i]>>4))
		tallest = max(tallest, int64(frame[7+3*i]&15))
	}
	for i := range count {
		samples += 8 * int64(frame[7+3*i]>>4) * int64(frame[7+3*i]&15) / (widest * tallest)
	}
	if count >= 4 { // Adobe's inverted CMYK is copied once more
		samples += 8 * 4
	}
	if progressive {
		return samples * 5
	}
	return max(samples, 8)
}

// exifOrientation returns the value of tag 0x0112 in the first directory of a
// TIFF block, or 1.
func exifOrientation(block []byte) int {
	if len(block) < 8 {
		return 1
	}
	var order binary.ByteOrder = binary.LittleEndian
	if block[0] == 'M' {
		order = binary.BigEndian
	}
	start := int64(order.Uint32(block[4:]))
	if start+2 > int64(len(block)) {
		return 1
	}
	entries := int64(order.Uint16(block[start:]))
	for i := range entries {
		at := start + 2 + 12*i
		if at+12 > int64(len(block)) {
			return 1
		}
		if order.Uint16(block[at:]) == 0x0112 {
			if value := int(order.Uint16(block[at+8:])); value >= 1 && value <= 8 {
				return value
			}
			return 1
		}
	}
	return 1
}

// isAnimatedGIF reports whether a GIF has more than one image. It decodes none.
func isAnimatedGIF(data []byte) bool {
	if len(data) < 13 {
		return false
	}
	pos := 13
	if data[10]&0x80 != 0 {
		pos += 3 << (1 + data[10]&7)
	}
	frames := 0
	for pos < len(data) && frames < 2 {
		switch data[pos] {
		case 0x21: // extension: label, then sub-blocks
			pos = skipGIFBlocks(data, pos+2)
		case 0x2c:
			frames++
			if pos+9 >= len(data) {
				return frames > 1
			}
			table := 0
			if data[pos+9]&0x80 != 0 {
				table = 3 << (1 + data[pos+9]&7)
			}
			pos = skipGIFBlocks(data, pos+10+table+1)
		default:
			return frames > 1
		}
	}
	return frames > 1
}

// skipGIFBlocks returns the position after the sub-blocks at pos.
func skipGIFBlocks(data []byte, pos int) int {
	for pos < len(data) && data[pos] != 0 {
		pos += int(data[pos]) + 1
	}
	return pos + 1
}

// firstWebPFrame returns the first frame of an animation as a still WebP,
// because the decoder supports only stills. ok is false for a still image, and
// for inconsistent chunks, whose error the decoder reports.
func firstWebPFrame(data []byte) (still []byte, ok bool) {
	frame, ok := riffChunk(data, 12, "ANMF")
	if !ok || len(frame) < 16 {
		return nil, false
	}
	body := frame[16:]
	var chunks []byte
	if alpha, ok := riffChunk(body, 0, "ALPH"); ok {
		// Extended header: the alpha flag, and the frame's size minus
		// one.
		header := append([]byte{0x10, 0, 0, 0}, frame[6:12]...)
		chunks = appendRIFFChunk(appendRIFFChunk(nil, "VP8X", header), "ALPH", alpha)
	}
	for _, kind := range []string{"VP8 ", "VP8L"} {
		if pixels, ok := riffChunk(body, 0, kind); ok {
			chunks = appendRIFFChunk(chunks, kind, pixels)
			still = binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(4+len(chunks)))
			return append(append(still, "WEBP"...), chunks...), true
		}
	}
	return nil, false
}

// riffChunk returns the body of the first chunk of a kind at or after pos. It
// returns false if no such chunk follows, or if the chunks before it are
// damaged.
func riffChunk(data []byte, pos int, kind string) ([]byte, bool) {
	for pos+8 <= len(data) {
		size := int64(binary.LittleEndian.Uint32(data[pos+4:]))
		end := int64(pos) + 8 + size
		if end > int64(len(data)) {
			return nil, false
		}
		if string(data[pos:pos+4]) == kind {
			return data[pos+8 : end], true
		}
		pos = int(end + size&1)
	}
	return nil, false
}

// appendRIFFChunk appends a chunk with its header and padding to a RIFF file.
func appendRIFFChunk(to []byte, kind string, body []byte) []byte {
	to = binary.LittleEndian.AppendUint32(append(to, kind...), uint32(len(body)))
	to = append(to, body...)
	if len(body)%2 == 1 {
		to = append(to, 0)
	}
	return to
}
