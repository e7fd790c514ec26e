// Golden data of date patterns: prints date_patterns.jsonl, from java.time of Java 17.
// Run it with: java tests/data/DatePatterns.java > tests/data/date_patterns.jsonl

import java.time.DayOfWeek;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.time.temporal.ChronoField;
import java.time.temporal.IsoFields;
import java.time.temporal.TemporalAdjusters;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Random;

class DatePatterns {
    static final String[] ZONES = {
        "UTC", "Asia/Shanghai", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata",
        "America/St_Johns", "Africa/Monrovia", "Pacific/Apia", "America/Sao_Paulo",
    };
    static final String[] PATTERNS = {
        "yyyy", "yy", "M", "MM", "MMM", "MMMM", "d", "dd", "D", "H", "HH", "h", "hh", "a", "m", "mm", "s", "ss",
        "S", "SSS", "E", "EEE", "EEEE", "Q", "XXX", "Z", "yyyy-MM-dd", "yyyyMMdd", "yyyyMMddHHmmssSSS",
        "yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "EEE, d MMM yyyy HH:mm:ss Z", "h:mm a 'o''clock'", "''yy''", "yyyy/MM '年' dd",
    };
    // Letters that java.time has only for a locale, or otherwise: of ISO 8601 in this language.
    static final String[] ISO = {"u", "w", "ww", "YYYY-'W'ww-u"};
    static final String[] STEPS = {
        "-1d", "+1d", "-1M", "+1M", "+13M", "-1y", "+4y", "-2w", "+1h", "-25h", "+90m", "-45s",
    };
    // The first of them move the date only.
    static final int DATE_STEPS = 8;
    static final String[] EDGES = {"year", "quarter", "month", "week"};

    public static void main(String[] arguments) {
        Random random = new Random(45);
        List<Long> instants = new ArrayList<>(List.of(0L, 951782399999L, 1735603200000L, 1609459199000L));
        for (int number = 0; number < 8; number++) {
            instants.add((long) (random.nextDouble() * 253_370_000_000_000L));
            instants.add((long) (random.nextDouble() * 2_000_000_000_000L));
        }
        for (long at : instants) {
            for (String zone : List.of(ZONES[random.nextInt(ZONES.length)], ZONES[random.nextInt(ZONES.length)])) {
                ZonedDateTime local = Instant.ofEpochMilli(at).atZone(ZoneId.of(zone));
                if (local.getYear() >= 1970) {
                    patterns(at, zone, local);
                    steps(at, zone, local, random);
                }
            }
        }
    }

    static void patterns(long at, String zone, ZonedDateTime local) {
        for (String pattern : PATTERNS) {
            print(at, zone, ":" + pattern, DateTimeFormatter.ofPattern(pattern, Locale.ENGLISH).format(local));
        }
        for (String pattern : ISO) {
            print(at, zone, ":" + pattern, iso(pattern).format(local));
        }
    }

    static DateTimeFormatter iso(String pattern) {
        DateTimeFormatterBuilder builder = new DateTimeFormatterBuilder();
        switch (pattern) {
            case "u" -> builder.appendValue(ChronoField.DAY_OF_WEEK);
            case "w" -> builder.appendValue(IsoFields.WEEK_OF_WEEK_BASED_YEAR);
            case "ww" -> builder.appendValue(IsoFields.WEEK_OF_WEEK_BASED_YEAR, 2);
            default -> builder.appendValue(IsoFields.WEEK_BASED_YEAR, 4).appendLiteral("-W")
                .appendValue(IsoFields.WEEK_OF_WEEK_BASED_YEAR, 2).appendLiteral("-")
                .appendValue(ChronoField.DAY_OF_WEEK);
        }
        return builder.toFormatter(Locale.ENGLISH);
    }

    static void steps(long at, String zone, ZonedDateTime local, Random random) {
        for (int number = 0; number < STEPS.length; number++) {
            ZonedDateTime target = moved(local, STEPS[number]);
            step(at, zone, STEPS[number], number < DATE_STEPS ? local : target, target);
        }
        for (String edge : EDGES) {
            step(at, zone, "." + edge + ".first", local, edge(local, edge, false));
            step(at, zone, "." + edge + ".last", local, edge(local, edge, true));
        }
        String first = STEPS[random.nextInt(DATE_STEPS)];
        String second = EDGES[random.nextInt(EDGES.length)];
        ZonedDateTime target = moved(edge(moved(local, first), second, true), "-1d");
        step(at, zone, first + "." + second + ".last-1d", local, target);
    }

    static ZonedDateTime moved(ZonedDateTime local, String step) {
        long count = Long.parseLong(step.substring(0, step.length() - 1));
        return switch (step.charAt(step.length() - 1)) {
            case 'y' -> local.plusYears(count);
            case 'M' -> local.plusMonths(count);
            case 'w' -> local.plusWeeks(count);
            case 'd' -> local.plusDays(count);
            case 'h' -> local.plusHours(count);
            case 'm' -> local.plusMinutes(count);
            default -> local.plusSeconds(count);
        };
    }

    static ZonedDateTime edge(ZonedDateTime local, String period, boolean isLast) {
        ZonedDateTime quarter = local.withDayOfMonth(1).withMonth((local.getMonthValue() - 1) / 3 * 3 + (isLast ? 3 : 1));
        return switch (period) {
            case "year" -> local.with(isLast ? TemporalAdjusters.lastDayOfYear() : TemporalAdjusters.firstDayOfYear());
            case "quarter" -> isLast ? quarter.with(TemporalAdjusters.lastDayOfMonth()) : quarter;
            case "month" -> local.with(isLast ? TemporalAdjusters.lastDayOfMonth() : TemporalAdjusters.firstDayOfMonth());
            default -> isLast
                ? local.with(TemporalAdjusters.nextOrSame(DayOfWeek.SUNDAY))
                : local.with(TemporalAdjusters.previousOrSame(DayOfWeek.MONDAY));
        };
    }

    // Prints steps of the date, unless clocks skip the time there: java.time moves it by the length of the gap.
    static void step(long at, String zone, String steps, ZonedDateTime local, ZonedDateTime target) {
        boolean isInRange = target.getYear() >= 1970 && target.getYear() <= 9998;
        if (isInRange && target.toLocalTime().equals(local.toLocalTime())) {
            print(at, zone, steps + ".epoch_ms", Long.toString(target.toInstant().toEpochMilli()));
        }
    }

    static void print(long at, String zone, String form, String text) {
        System.out.println("{\"at_ms\":" + at + ",\"zone\":\"" + zone + "\",\"form\":\"" + form + "\",\"text\":\"" + text + "\"}");
    }
}
