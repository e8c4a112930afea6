class Toolroom < Formula
  desc "{{summary}}"
  homepage "{{homepage}}"
  version "{{.Number}}"
  license "MIT"

  on_macos do
    on_arm do
      url "{{url "darwin" "arm64"}}"
      sha256 "{{sha256 "darwin" "arm64"}}"
    end
    on_intel do
      url "{{url "darwin" "amd64"}}"
      sha256 "{{sha256 "darwin" "amd64"}}"
    end
  end

  on_linux do
    on_arm do
      url "{{url "linux" "arm64"}}"
      sha256 "{{sha256 "linux" "arm64"}}"
    end
    on_intel do
      url "{{url "linux" "amd64"}}"
      sha256 "{{sha256 "linux" "amd64"}}"
    end
  end

  def install
    bin.install Dir["mcp-*"]
    doc.install "THIRD_PARTY_LICENSES.txt"
    bash_completion.install "completions/mcp-host.bash" => "mcp-host"
    zsh_completion.install "completions/mcp-host.zsh" => "_mcp-host"
    fish_completion.install "completions/mcp-host.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/mcp-host --version")
    (testpath/"hello.txt").write "hello"
    assert_match "hello.txt", shell_output("#{bin}/mcp-ls --text --call '{\"path\":\".\"}' --root #{testpath}")
  end
end
