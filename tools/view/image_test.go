package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// quadrants returns an image with red, green, blue and transparent quarters.
func quadrants(width, height int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			c := color.NRGBA{R: 255, A: 255}
			switch {
			case x >= width/2 && y < height/2:
				c = color.NRGBA{G: 255, A: 255}
			case x < width/2 && y >= height/2:
				c = color.NRGBA{B: 255, A: 255}
			case x >= width/2:
				c = color.NRGBA{}
			}
			img.SetNRGBA(x, y, c)
		}
	}
	return img
}

func noise(width, height int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	random := rand.New(rand.NewPCG(1, 2))
	for i := range img.Pix {
		img.Pix[i] = byte(random.Uint32())
	}
	return img
}

func encodeImage(t testing.TB, format string, img image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	var err error
	switch format {
	case "png":
		err = png.Encode(&out, img)
	case "jpeg":
		err = jpeg.Encode(&out, img, &jpeg.Options{Quality: 95})
	case "gif":
		err = gif.Encode(&out, img, nil)
	case "bmp":
		err = bmp.Encode(&out, img)
	case "tiff":
		err = tiff.Encode(&out, img, &tiff.Options{Compression: tiff.Deflate})
	}
	require.NoError(t, err)
	return out.Bytes()
}

// tinyWebP returns a lossless WebP of one pixel, built by hand since the module
// has no WebP encoder.
func tinyWebP(t testing.TB) []byte {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
	require.NoError(t, err)
	return data
}

func load(t testing.TB, data []byte) (*picture, error) {
	t.Helper()
	format := imageFormat(data)
	require.NotEmpty(t, format)
	return loadImage(context.Background(), bytes.NewReader(data), int64(len(data)), format)
}

func decodeSent(t testing.TB, pic *picture) image.Image {
	t.Helper()
	require.LessOrEqual(t, len(pic.Data), maxImageBytes)
	img, format, err := image.Decode(bytes.NewReader(pic.Data))
	require.NoError(t, err)
	require.Equal(t, pic.MIME, "image/"+format)
	require.Equal(t, image.Pt(pic.SentWidth, pic.SentHeight), img.Bounds().Size())
	return img
}

func TestFormatsByContent(t *testing.T) {
	small := quadrants(20, 10)
	for _, format := range []string{"png", "jpeg", "gif", "bmp", "tiff"} {
		t.Run(format, func(t *testing.T) {
			data := encodeImage(t, format, small)
			require.Equal(t, format, imageFormat(data[:16]))
			pic, err := load(t, data)
			require.NoError(t, err)
			require.Equal(t, format, pic.Format)
			require.Equal(t, []int{20, 10}, []int{pic.Width, pic.Height})
			if format == "png" || format == "jpeg" || format == "gif" {
				require.Equal(t, data, pic.Data, "what is small enough is sent as it is")
			} else {
				require.Equal(t, "image/png", pic.MIME, "models take neither bmp nor tiff")
				decodeSent(t, pic)
			}
		})
	}
	pic, err := load(t, tinyWebP(t))
	require.NoError(t, err)
	require.Equal(t, "image/webp", pic.MIME)
	require.Equal(t, tinyWebP(t), pic.Data)
}

func TestTextIsNoImage(t *testing.T) {
	for _, text := range []string{"", "B", "BM", "BMW is a car maker and a text", "GIF", "RIFF and raff and more", "II", "<svg xmlns='http://www.w3.org/2000/svg'/>", "MM*", "\xff\xd8"} {
		require.Empty(t, imageFormat([]byte(text)), "%q", text)
	}
}

func TestLargeImagesAreScaled(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	for _, size := range []image.Point{{1800, 700}, {1570, 3}, {7, 4001}, {1600, 400}} {
		pic, err := load(t, encodeImage(t, "png", quadrants(size.X, size.Y)))
		require.NoError(t, err)
		img := decodeSent(t, pic)
		require.Equal(t, maxImageSide, max(pic.SentWidth, pic.SentHeight))
		require.Equal(t, size, image.Pt(pic.Width, pic.Height), "the header tells the file's size")
		if size.X < 100 || size.Y < 100 {
			continue
		}
		at := func(x, y int) color.NRGBA {
			return color.NRGBAModel.Convert(img.At(pic.SentWidth*x/8, pic.SentHeight*y/8)).(color.NRGBA)
		}
		require.Equal(t, color.NRGBA{R: 255, A: 255}, at(1, 1))
		require.Equal(t, color.NRGBA{G: 255, A: 255}, at(7, 1))
		require.Equal(t, color.NRGBA{B: 255, A: 255}, at(1, 7))
		require.Zero(t, at(7, 7).A)
	}
}

func TestAveragingKeepsColours(t *testing.T) {
	// Half transparent, half white: the mean is white with half alpha, not
	// grey.
	img := image.NewNRGBA(image.Rect(0, 0, 4, 4))
	for i := 0; i < len(img.Pix); i += 8 {
		copy(img.Pix[i:], []byte{255, 255, 255, 255})
	}
	small := scaleDown(t.Context(), img, 2)
	require.Equal(t, image.Rect(0, 0, 2, 2), small.Bounds())
	for i := 0; i < len(small.Pix); i += 4 {
		require.Equal(t, []byte{255, 255, 255, 128}, small.Pix[i:i+4])
	}
	// A single colour is kept, even if the pixels do not divide evenly and
	// the image does not begin at 0, 0.
	plain := image.NewNRGBA(image.Rect(5, 5, 1705, 406))
	draw.Draw(plain, plain.Bounds(), image.NewUniform(color.NRGBA{10, 200, 30, 255}), image.Point{}, draw.Src)
	scaled := scaleDown(t.Context(), plain, maxImageSide)
	require.True(t, bytes.Equal(bytes.Repeat([]byte{10, 200, 30, 255}, len(scaled.Pix)/4), scaled.Pix))
}

func TestNoiseFitsTheBudget(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	// Large enough to exceed the limit unscaled.
	for format, img := range map[string]image.Image{"png": noise(500, 480), "jpeg": noise(900, 860)} {
		data := encodeImage(t, format, img)
		require.Greater(t, len(data), maxImageBytes)
		pic, err := load(t, data)
		require.NoError(t, err)
		require.Equal(t, "image/jpeg", pic.MIME)
		decodeSent(t, pic)
	}
}

func TestAnimationsShowTheirFirstFrame(t *testing.T) {
	var out bytes.Buffer
	red := image.NewPaletted(image.Rect(0, 0, 8, 8), color.Palette{color.NRGBA{R: 255, A: 255}, color.Black})
	black := image.NewPaletted(image.Rect(0, 0, 8, 8), red.Palette)
	for i := range black.Pix {
		black.Pix[i] = 1
	}
	require.NoError(t, gif.EncodeAll(&out, &gif.GIF{Image: []*image.Paletted{red, black}, Delay: []int{1, 1}}))
	pic, err := load(t, out.Bytes())
	require.NoError(t, err)
	require.Equal(t, "first frame of an animation", pic.Note)
	require.Equal(t, "image/png", pic.MIME)
	r, _, _, _ := decodeSent(t, pic).At(3, 3).RGBA()
	require.EqualValues(t, 0xffff, r)

	still, pixels := tinyWebP(t), tinyWebP(t)[20:]
	size := binary.LittleEndian.Uint32(still[16:])
	frame := appendRIFFChunk(make([]byte, 16), "VP8L", pixels[:size])
	chunks := appendRIFFChunk(appendRIFFChunk(appendRIFFChunk(nil, "VP8X", []byte{2, 0, 0, 0, 0, 0, 0, 0, 0, 0}), "ANIM", make([]byte, 6)), "ANMF", frame)
	animated := append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(4+len(chunks))), append([]byte("WEBP"), chunks...)...)
	pic, err = load(t, animated)
	require.NoError(t, err)
	require.Equal(t, "first frame of an animation", pic.Note)
	decodeSent(t, pic)
}

// withOrientation adds an EXIF segment to a JPEG.
func withOrientation(data []byte, value byte) []byte {
	tiffBlock := []byte{'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, value, 0, 0, 0, 0, 0, 0}
	body := append([]byte("Exif\x00\x00"), tiffBlock...)
	segment := append([]byte{0xff, 0xe1, 0, byte(len(body) + 2)}, body...)
	return append(append(append([]byte{}, data[:2]...), segment...), data[2:]...)
}

func TestOrientationIsApplied(t *testing.T) {
	plain := encodeImage(t, "jpeg", onWhite(quadrants(40, 20)))
	// Corner at which the red corner of the stored pixels is shown.
	red := map[byte]image.Point{1: {0, 0}, 2: {1, 0}, 3: {1, 1}, 4: {0, 1}, 5: {0, 0}, 6: {1, 0}, 7: {1, 1}, 8: {0, 1}}
	for orientation, corner := range red {
		pic, err := load(t, withOrientation(plain, orientation))
		require.NoError(t, err)
		img := decodeSent(t, pic)
		if orientation >= 5 {
			require.Equal(t, []int{20, 40}, []int{pic.Width, pic.Height})
		}
		c := color.NRGBAModel.Convert(img.At(2+corner.X*(pic.SentWidth-5), 2+corner.Y*(pic.SentHeight-5))).(color.NRGBA)
		require.True(t, c.R > 200 && c.G < 60 && c.B < 60, "orientation %d: %v", orientation, c)
	}
}

// pngOfSize returns a PNG with a size in its header and without image data.
func pngOfSize(width, height uint32) []byte {
	data := append([]byte("\x89PNG\r\n\x1a\n"), 0, 0, 0, 13)
	header := append([]byte("IHDR"), make([]byte, 13)...)
	binary.BigEndian.PutUint32(header[4:], width)
	binary.BigEndian.PutUint32(header[8:], height)
	header[12], header[13] = 8, 6
	return binary.BigEndian.AppendUint32(append(data, header...), crc32.ChecksumIEEE(header))
}

func TestBombsAreRefusedBeforeDecoding(t *testing.T) {
	for _, size := range [][2]uint32{{100_000, 100_000}, {1 << 30, 1 << 30}, {20_000, 20_000}, {1 << 31 >> 1, 1}} {
		_, err := load(t, pngOfSize(size[0], size[1]))
		require.Error(t, err)
		require.Contains(t, []toolerr.Code{toolerr.TooLarge, toolerr.BinaryFile}, toolerr.CodeOf(err))
	}
	_, err := loadImage(context.Background(), bytes.NewReader(nil), maxImageFile+1, "png")
	require.Equal(t, toolerr.TooLarge, toolerr.CodeOf(err))
}

func TestProgressiveJPEGCosts(t *testing.T) {
	// Three components, the first with twice the samples in both
	// directions: 1.5 samples per pixel.
	frame := []byte{8, 0, 16, 0, 16, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1}
	require.EqualValues(t, 12, jpegPixelCost(frame, false))
	require.EqualValues(t, 60, jpegPixelCost(frame, true))
	require.EqualValues(t, 8*20, jpegPixelCost(frame[:4], false), "what cannot be read costs the most")
}

func TestDamagedImagesAreSaidSo(t *testing.T) {
	for _, format := range []string{"png", "jpeg", "gif", "bmp", "tiff"} {
		data := encodeImage(t, format, quadrants(64, 64))
		_, err := load(t, data[:len(data)/2])
		require.Error(t, err, format)
		require.Equal(t, toolerr.BinaryFile, toolerr.CodeOf(err), format)
		require.Contains(t, err.Error(), "hex=true")
	}
}

func TestCancelledWhileWaiting(t *testing.T) {
	imageSlot <- struct{}{}
	defer func() { <-imageSlot }()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := loadImage(ctx, bytes.NewReader(nil), 0, "png")
	require.ErrorIs(t, err, context.Canceled)
}

func TestCancelledWhileDecoding(t *testing.T) {
	data := encodeImage(t, "png", noise(200, 200))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := prepareImage(ctx, data, "png")
	require.ErrorIs(t, err, context.Canceled)
}

func FuzzLoadImage(f *testing.F) {
	for _, format := range []string{"png", "jpeg", "gif", "bmp", "tiff"} {
		f.Add(encodeImage(f, format, quadrants(9, 7)))
	}
	f.Add(tinyWebP(f))
	f.Add(withOrientation(encodeImage(f, "jpeg", quadrants(9, 7)), 6))
	f.Fuzz(func(t *testing.T, data []byte) {
		format := imageFormat(data)
		if format == "" {
			return
		}
		pic, err := prepareImage(context.Background(), data, format)
		if err == nil {
			require.LessOrEqual(t, len(pic.Data), maxImageBytes)
			require.LessOrEqual(t, max(pic.SentWidth, pic.SentHeight), maxImageSide)
		}
	})
}

func BenchmarkLoadPhoto(b *testing.B) {
	name := filepath.Join(b.TempDir(), "photo.jpg")
	require.NoError(b, os.WriteFile(name, encodeImage(b, "jpeg", onWhite(quadrants(6000, 4000))), 0o600))
	data, err := os.ReadFile(name)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		_, err := prepareImage(context.Background(), data, "jpeg")
		require.NoError(b, err)
	}
}
