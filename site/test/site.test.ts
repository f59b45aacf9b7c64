/**
 * The built site in a real browser: every page loads without errors, every link leads somewhere, phones can read it.
 */
import { accessSync, constants, mkdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import { chromium, type Browser, type Locator, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { packages } from '../../packages/packages.mjs';
import { root } from '../../test/docs/markdown.js';
import { dist, serveSite, sitePages, type ServedSite } from './served-site.js';

const { homes, titleOf, writtenPages } = (await import(join(root, 'site/pages.mjs'))) as {
  readonly homes: () => Readonly<Record<string, string | undefined>>;
  readonly titleOf: (file: string) => string;
  readonly writtenPages: () => readonly { readonly files: readonly string[] }[];
};

/** The package and, once it is known, the repository. */
const addresses = Object.values(homes()).filter((href) => href !== undefined);

/** In the first column of the tables of Errors. */
const errorCodes = [
  ...new Set(
    [...readFileSync(join(root, 'docs/errors.md'), 'utf8').matchAll(/^\| *(`ERR_[^|]+)\|/gm)].flatMap(
      ([, cell = '']) => cell.match(/ERR_\w+/g) ?? [],
    ),
  ),
];

const executable = [
  process.env['CHROMIUM'],
  '/usr/bin/chromium',
  '/usr/bin/google-chrome',
  '/usr/bin/chromium-browser',
].find(isExecutable);

/** Pages of different kinds: prose, wide tables, pictures, code, the reference. */
const LOOKED_AT = [
  '/index.html',
  '/errors.html',
  '/failure-modes.html',
  '/benchmarks.html',
  '/compatibility.html',
  '/recipes.html',
  '/api/index.html',
  '/api/index/classes/ResilientWatcher.html',
];

/** Headings with the longest names, and with sentences. */
const HEADINGS_LOOKED_AT = [
  '/scoreboard.html',
  '/security.html',
  '/changelog.html',
  ...sitePages.toSorted((one, other) => basename(other).length - basename(one).length).slice(0, 6),
];

const reason =
  sitePages.length === 0
    ? 'there is no site/dist: npm run --prefix site build'
    : executable === undefined
      ? 'no chromium is installed (apt-get install chromium), and CHROMIUM does not name one'
      : undefined;
if (reason !== undefined) console.warn(`Skipped: ${reason}`);

describe.skipIf(reason !== undefined)('the documentation site in a browser', () => {
  let site: ServedSite;
  let browser: Browser;

  beforeAll(async () => {
    site = await serveSite();
    browser = await chromium.launch({ executablePath: executable ?? '', args: ['--no-sandbox'] });
  });

  afterAll(async () => {
    await browser.close();
    await site[Symbol.asyncDispose]();
  });

  async function open(path: string, options = {}): Promise<{ page: Page; complaints: string[] }> {
    const page = await browser.newPage(options);
    const complaints: string[] = [];
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(`${path}: ${message.text()}`);
    });
    page.on('pageerror', (error) => complaints.push(`${path}: ${error.message}`));
    page.on('requestfailed', (request) => complaints.push(`${path}: ${request.url()} failed`));
    page.on('request', (request) => {
      if (!request.url().startsWith(site.url) && !request.url().startsWith('data:')) {
        complaints.push(`${path}: asks ${request.url()}`);
      }
    });
    await page.goto(`${site.url}${path}`, { waitUntil: 'networkidle' });
    return { page, complaints };
  }

  test.each(LOOKED_AT)('%s loads without an error and asks no other host', async (path) => {
    const { page, complaints } = await open(path);
    expect(complaints).toEqual([]);
    expect(await page.locator('.vp-doc h1').count()).toBe(1);
    await screenshot(page, path, 'desktop');
    await page.close();
  });

  test.each(LOOKED_AT)('%s can be read on a phone', async (path) => {
    const { page } = await open(path, { viewport: { width: 390, height: 812 } });
    expect(await cutOff(page)).toEqual([]);
    await screenshot(page, path, 'phone');
    await page.close();
  });

  test('no page that somebody wrote scrolls sideways on a phone', async () => {
    const { page } = await open('/index.html', { viewport: { width: 390, height: 812 } });
    const wide: string[] = [];
    for (const path of sitePages.filter((each) => !/^\/(?:api|source)\/./.test(each))) {
      await page.goto(`${site.url}${path}`);
      const isWide = await page.evaluate<boolean>('document.documentElement.scrollWidth > window.innerWidth');
      if (isWide) wide.push(path);
    }
    expect(wide).toEqual([]);
    await page.close();
  });

  test('no table of sentences is cut off on a phone', async () => {
    const { page } = await open('/index.html', { viewport: { width: 390, height: 812 } });
    const wide: string[] = [];
    for (const path of sitePages.filter((each) => !/^\/(?:api|source)\/./.test(each))) {
      await page.goto(`${site.url}${path}`);
      wide.push(
        ...(await page.evaluate<string[]>(`
          [...document.querySelectorAll('.vp-doc table.stacked')]
            .filter((table) => [table, ...table.querySelectorAll('td')].some((box) => box.scrollWidth > box.clientWidth + 1))
            .map((table) => location.pathname + ': ' + table.textContent.trim().slice(0, 60))`)),
      );
    }
    expect(wide).toEqual([]);
    await page.goto(`${site.url}/errors.html`);
    expect(await page.locator('.vp-doc table:not(.stacked)').count()).toBe(0);
    await page.close();
  });

  test('an error code on any page leads to its row on the page of errors', async () => {
    const { page } = await open('/atomic-writes.html', { viewport: { width: 390, height: 812 } });
    await page.locator('.vp-doc a', { hasText: 'ERR_WRITE_MOUNTED' }).first().click();
    await page.waitForURL('**/errors.html#err_write_mounted');
    await expect
      .poll(() =>
        page.evaluate<number>(`document.querySelector('#err_write_mounted').getBoundingClientRect().y`),
      )
      .toSatisfy((y: number) => y > 60 && y < 812);
    const ids = await page.locator('.vp-doc code[id^="err_"]').count();
    expect(ids).toBe(errorCodes.length);
    await page.close();
  });

  test('the sidebar has titles of pages and of what they are about, and no names of folders', async () => {
    const { page } = await open('/index.html', { viewport: { width: 1280, height: 800 } });
    const headings = await page.locator('.VPSidebar h2').allInnerTexts();
    expect(headings.length).toBeGreaterThan(5);
    expect(headings.filter((heading) => !/^[A-Z]|^gRPC$/.test(heading))).toEqual([]);
    await page.close();
  });

  test('the first screen says what it is, how to install it and where it comes from, and has the ways into the pages', async () => {
    const { page } = await open('/index.html', { viewport: { width: 1280, height: 800 } });
    await expectInside(page, [
      page.locator('.vp-doc p', { hasText: 'command-line program' }),
      page.locator('.vp-doc pre', { hasText: 'npm install resilient-watcher' }),
      page.locator('.vp-doc pre', { hasText: "await watch('app.yaml'" }),
      ...addresses.map((href) => page.locator(`.vp-doc .landing a[href="${href}"]`)),
      ...['Library', 'Program', 'Certificates'].map((name) =>
        page.locator('.landing li a', { hasText: name }),
      ),
    ]);
    expect(await page.evaluate(`document.querySelector('.vp-doc img').naturalWidth`)).toBeGreaterThan(0);
    expect(await cutOff(page)).toEqual([]);
    await page.close();
  });

  test('so does the first screen of a phone', async () => {
    const { page } = await open('/index.html', { viewport: { width: 390, height: 812 } });
    await expectInside(page, [
      page.locator('.vp-doc p', { hasText: 'command-line program' }),
      page.locator('.vp-doc pre', { hasText: 'npm install resilient-watcher' }),
      page.locator('.vp-doc pre', { hasText: "await watch('app.yaml'" }),
      ...addresses.map((href) => page.locator(`.vp-doc .landing a[href="${href}"]`)),
    ]);
    await page.close();
  });

  test('a wide table shows what its rows are about, wherever it is scrolled to, and a shadow where it goes on', async () => {
    const { page } = await open('/scoreboard.html', { viewport: { width: 1280, height: 800 } });
    const of = <Value>(what: string): Promise<Value> =>
      page.evaluate<Value>(`((table) => ${what})(document.querySelector('.vp-doc table'))`);
    const place = `table.querySelector('td').getBoundingClientRect().x`;
    const before = await of<number>(place);
    expect(await of('(table.scrollLeft = table.scrollWidth, table.scrollLeft)')).toBeGreaterThan(100);
    // A collapsed border is half a pixel.
    expect(Math.abs((await of<number>(place)) - before)).toBeLessThan(1);
    expect(await of('getComputedStyle(table).backgroundAttachment')).toBe('local, scroll');
    await page.close();
  });

  test('the index of the API needs no scrolling sideways on a phone', async () => {
    const { page } = await open('/api/index.html', { viewport: { width: 390, height: 812 } });
    const wide = `[...document.querySelectorAll('.vp-doc table')].filter((table) => table.scrollWidth > table.clientWidth)`;
    expect(await page.evaluate<number>(`${wide}.length`)).toBe(0);
    await page.close();
  });

  test('the icon of the site is a picture', async () => {
    const { page } = await open('/index.html');
    const href = await page.locator('link[rel=icon]').getAttribute('href');
    const width = await page.evaluate<number>(`new Promise((resolve, reject) => {
      const icon = Object.assign(new Image(), { onload: () => resolve(icon.naturalWidth), onerror: reject });
      icon.src = ${JSON.stringify(href)};
    })`);
    expect(width).toBeGreaterThan(0);
    await page.close();
  });

  test.each([390, 1280])(
    'on a screen %i pixels wide, no text in a picture is smaller than 8 pixels',
    async (width) => {
      const { page } = await open('/index.html', { viewport: { width, height: 812 } });
      const small: string[] = [];
      for (const path of pagesWithPictures()) {
        await page.goto(`${site.url}${path}`);
        small.push(...(await smallText(page)));
      }
      expect(small).toEqual([]);
      await page.close();
    },
  );

  test('on a phone no name in a heading is broken within a word', async () => {
    const { page } = await open('/index.html', { viewport: { width: 390, height: 812 } });
    const broken: string[] = [];
    for (const path of HEADINGS_LOOKED_AT) {
      await page.goto(`${site.url}${path}`);
      broken.push(...(await brokenHeadings(page)));
    }
    expect(broken).toEqual([]);
    await page.close();
  });

  test('the index of the API has a sentence for every export', async () => {
    const { page } = await open('/api/index.html');
    const rows = await page.locator('.vp-doc tbody tr').allInnerTexts();
    expect(rows.length).toBeGreaterThan(200);
    expect(rows.filter((row) => !/\t[^\t]{8,}[.]$/.test(row))).toEqual([]);
    await page.close();
  });

  test('the search finds an export and an error code', async () => {
    const { page, complaints } = await open('/index.html');
    for (const [word, path] of [
      ['AtomicVolume', '/'],
      ['ERR_CLOSED', '/errors.html'],
    ] as const) {
      await page.locator('.VPNavBarSearch button').first().click();
      await page.locator('.VPLocalSearchBox input').fill(word);
      const hit = page.locator(`.VPLocalSearchBox .result[href*="${path}"]`).first();
      await hit.waitFor();
      await page.keyboard.press('Escape');
    }
    expect(complaints).toEqual([]);
    await page.close();
  });

  test('the search names a guide before generated pages', async () => {
    const { page } = await open('/index.html');
    await page.locator('.VPNavBarSearch button').first().click();
    await page.locator('.VPLocalSearchBox input').fill('certificates');
    const first = page.locator('.VPLocalSearchBox .result').first();
    await first.waitFor();
    expect(await first.getAttribute('href')).not.toMatch(/\/(api|source)\//);
    await page.close();
  });

  test('in dark mode a plot has no white ground', async () => {
    const { page } = await open('/benchmarks.html', { colorScheme: 'dark' });
    const filter = `getComputedStyle(document.querySelector('.vp-doc img[src$=".svg"]')).filter`;
    expect(await page.evaluate<string>(filter)).toContain('invert');
    await page.close();
  });

  test('dark mode follows the system, and the switch changes it', async () => {
    const { page } = await open('/benchmarks.html', { colorScheme: 'dark' });
    const isDark = (): Promise<boolean> =>
      page.evaluate<boolean>(`document.documentElement.classList.contains('dark')`);
    expect(await isDark()).toBe(true);
    await screenshot(page, '/benchmarks.html', 'dark');
    await page.locator('.VPNavBarAppearance .VPSwitchAppearance').click();
    expect(await isDark()).toBe(false);
    await page.close();
  });
});

test('no two pages have the same name in the sidebar', () => {
  const names = writtenPages().flatMap(({ files }) => files.map(titleOf));
  expect(names).toEqual([...new Set(names)]);
});

describe.skipIf(sitePages.length === 0)('what is served', () => {
  test('each link on each page leads to a page, and to a heading where it names one', () => {
    const known = new Map(sitePages.map((path) => [path, contentsOf(path)]));
    const isDead = (path: string, href: string): boolean => {
      const { origin, pathname, hash } = new URL(href.replaceAll('&amp;', '&'), `http://site${path}`);
      if (origin !== 'http://site') return false;
      const target = known.get(pathname.endsWith('/') ? `${pathname}index.html` : pathname);
      return !target || (hash !== '' && !target.ids.has(decodeURIComponent(hash.slice(1))));
    };
    const dead = [...known].flatMap(([path, { links }]) =>
      links.filter((href) => isDead(path, href)).map((href) => `${path} -> ${href}`),
    );
    expect(dead).toEqual([]);
    expect(known.size).toBeGreaterThan(100);
  });

  test('the API has each entry point of each package that is not internal, with what it is for', () => {
    const html = readFileSync(join(dist, 'api/index.html'), 'utf8');
    const described = [...html.matchAll(/<h2[^>]*>.*?<code[^>]*>(.*?)<\/code>.*?<\/h2><p>\w/g)];
    const named = described.map(([, name = '']) => name.replaceAll(/<[^>]*>/g, ''));
    const all = packages.flatMap(({ entryPoints }) => entryPoints.map(({ specifier }) => specifier));
    const isPublic = (specifier: string): boolean => !specifier.endsWith('/internal');
    expect(named.toSorted()).toEqual(all.filter(isPublic).toSorted());
  });

  test('llms.txt links to pages that exist', () => {
    const links = [...readFileSync(join(dist, 'llms.txt'), 'utf8').matchAll(/\]\(([^)]+)\)/g)].map(
      ([, link]) => link,
    );
    expect(links.length).toBeGreaterThan(20);
    expect(links.filter((link) => !sitePages.includes(link ?? ''))).toEqual([]);
  });

  test('llms-full.txt has the guides and no comments of the tests', () => {
    const text = readFileSync(join(dist, 'llms-full.txt'), 'utf8');
    expect(text).toContain('# Watching');
    expect(text).not.toContain('<!--');
  });
});

function contentsOf(path: string): { ids: ReadonlySet<string>; links: string[] } {
  const html = readFileSync(join(dist, path), 'utf8');
  const valuesOf = (pattern: RegExp): string[] => [...html.matchAll(pattern)].map(([, value = '']) => value);
  return { ids: new Set(valuesOf(/ id="([^"]+)"/g)), links: valuesOf(/<a [^>]*?href="([^"]+)"/g) };
}

/** The first words of the blocks of code that are wider than their place. */
function cutOff(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`
    [...document.querySelectorAll('.vp-doc pre, .vp-doc div[class*="language-"]')]
      .filter((block) => block.scrollWidth > block.clientWidth)
      .map((block) => block.textContent.trim().slice(0, 40))`);
}

function pagesWithPictures(): string[] {
  return sitePages.filter((path) => /\/assets\/[^"]+\.svg"/.test(readFileSync(join(dist, path), 'utf8')));
}

/** What is named is on the first screen, wholly. */
async function expectInside(page: Page, places: readonly Locator[]): Promise<void> {
  const height = page.viewportSize()?.height ?? 0;
  const boxes = await Promise.all(places.map((place) => place.first().boundingBox()));
  expect(boxes.map((box) => box !== null && box.y + box.height <= height)).toEqual(boxes.map(() => true));
}

/** The pictures in which the smallest text is shown with less than 8 pixels. */
function smallText(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`
    Promise.all([...document.querySelectorAll('.vp-doc img')].map(async (img) => {
      const svg = await (await fetch(img.currentSrc)).text();
      const sizes = [...svg.matchAll(/font-size(?:="|: )([0-9.]+)/g)].map(([, size]) => Number(size));
      const [, width] = /viewBox="0 0 ([0-9.]+)/.exec(svg);
      const shown = (Math.min(...sizes) * img.clientWidth) / Number(width);
      return shown < 8 ? [new URL(img.currentSrc).pathname + ': ' + shown.toFixed(1)] : [];
    })).then((found) => found.flat())`);
}

/** The headings in which a line ends within a word. */
function brokenHeadings(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`
    [...document.querySelectorAll('.vp-doc :is(h1, h2, h3, h4)')].filter((heading) => {
      const walker = document.createTreeWalker(heading, NodeFilter.SHOW_TEXT);
      const range = document.createRange();
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        for (const { index, 0: word } of node.data.matchAll(/[A-Za-z]+/g)) {
          range.setStart(node, index);
          range.setEnd(node, index + word.length);
          if (new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1) return true;
        }
      }
      return false;
    }).map((heading) => heading.textContent)`);
}

/** Saved in the directory `SCREENSHOTS`, for people to inspect. */
async function screenshot(page: Page, path: string, kind: string): Promise<void> {
  const folder = process.env['SCREENSHOTS'];
  if (folder === undefined) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${path.slice(1).replaceAll('/', '-')}.${kind}.png`) });
}

function isExecutable(path: string | undefined): path is string {
  try {
    accessSync(path ?? '', constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
