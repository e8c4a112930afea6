# Builds the image from source: docker build -t toolroom .
# Releases have the same image as a file, made by `make dist` without Docker.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS TARGETARCH
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH make build

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /src/bin/ /usr/bin/
WORKDIR /workspace
ENTRYPOINT ["/usr/bin/mcp-host"]
CMD ["stdio", "--root", "/workspace"]
