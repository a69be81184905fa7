#!/bin/sh
# The browser for the browser tests: taken from the system's packages where this account may install them.
for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null 2>&1; then exit 0; fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "Installing chromium and Chinese fonts for the browser tests (about 200 MB)"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >/dev/null 2>&1
  if apt-get install -y -qq --no-install-recommends chromium chromium-driver fonts-noto-cjk >/dev/null 2>&1; then exit 0; fi
fi
echo "****************************************************************************"
echo "* No Chromium here, and it could not be installed: BROWSER TESTS ARE SKIPPED"
echo "* apt install chromium chromium-driver fonts-noto-cjk"
echo "****************************************************************************"
exit 0
