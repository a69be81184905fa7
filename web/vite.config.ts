import { fileURLToPath } from 'node:url'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
import { mock } from './mock/server.js'
import { licences } from './plugins/licences.js'
import { sentences } from './plugins/sentences.js'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

export default defineConfig({
  plugins: [sentences(), react(), licences(), ...(process.env.TRACKBED_MOCK ? [mock()] : [])],
  resolve: { alias: { '@': here('./src'), '@messages': here('../src/trackbed/base/messages') } },
  build: {
    outDir: here('../src/trackbed/server/static'),
    emptyOutDir: true,
    target: 'es2022',
    // No inline scripts or data: fonts, so that the policy default-src 'self' holds.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 900,
  },
  server: {
    port: 5173,
    fs: { allow: ['..'] },
    proxy: process.env.TRACKBED_MOCK ? {} : { '/api': process.env.TRACKBED_URL ?? 'http://127.0.0.1:8470' },
  },
})
