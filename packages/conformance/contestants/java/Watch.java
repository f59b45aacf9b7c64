/**
 * WatchService on the directory of the file; with "best", the file is also read when a second has passed.
 * https://docs.oracle.com/en/java/javase/17/docs/api/java.base/java/nio/file/WatchService.html
 */
import java.nio.file.*;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;

import static java.nio.file.StandardWatchEventKinds.*;

public class Watch {
    public static void main(String[] args) throws Exception {
        boolean isBest = args[0].equals("best");
        List<Path> paths = Arrays.stream(args).skip(1).map(Path::of).toList();
        Show show = new Show(paths);
        WatchService watcher = FileSystems.getDefault().newWatchService();
        for (Path directory : paths.stream().map(Path::getParent).distinct().toList())
            directory.register(watcher, ENTRY_CREATE, ENTRY_DELETE, ENTRY_MODIFY);
        show.show(true);
        while (true) {
            WatchKey key = isBest ? watcher.poll(1, TimeUnit.SECONDS) : watcher.take();
            if (key != null) {
                key.pollEvents();
                key.reset();
            }
            show.show(key != null);
        }
    }
}
