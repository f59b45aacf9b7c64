/** `npm run --prefix site build`: the documentation site, in site/dist. `DOCS_BASE=/folder/` is where it will be served from. */
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { build } from 'vitepress';

import { programs } from './examples.mjs';
import { stageTextFiles } from './llms.mjs';
import { root, stagePages, staging } from './pages.mjs';
import { stageReference } from './reference.mjs';

rmSync(staging, { recursive: true, force: true });
mkdirSync(join(staging, 'public'), { recursive: true });
copyFileSync(join(root, 'site/icon.svg'), join(staging, 'public/icon.svg'));
const modules = await stageReference();
stagePages(programs());
stageTextFiles(modules);
writeFileSync(join(staging, 'modules.json'), JSON.stringify(modules));
await build(join(root, 'site'));
