"""Wordings: sums."""

FRAMES = (
    "{what's|what is|whats|how much is|how much makes|calculate|compute|work out|tell me|give me|find|solve|evaluate|figure out|determine|reckon|get|do|count up} $sum[ {please|exactly|altogether|for me|in the shell|with python}]",
    "$sum",
    "$sum{ =| is| equals| = ?|, how much is that|, what is that| makes what| gives| comes to|, please|: how much| - how much is it|, do the maths}",
    "{I need|please do|do the sum|quick sum|a little sum|maths|math question|calculate this|do the math|sum|a sum for you|arithmetic|compute|calculator}: $sum",
    "{what do I get for|what do you get for|what's the result of|what is the value of|what's the answer to|what comes out of|what does one get for|what would be} $sum",
    "{can you|could you|would you} {work out|compute|figure out|calculate|tell me|add up|do} {what |}$sum{| is| makes| comes to}",
    "{I need|give me|I want|I'd like|find|get me} {the result|the value|the answer|the number|the figure} {of|for} $sum",
    "{I need to know|do you know|can you say|tell me|say|I wonder|I want to know} {what|how much} $sum {is|makes|gives|comes to|would be}",
    "{how much|what} {does|do|would|will|might} $sum {make|come to|give|be|amount to|equal}",
    "{use python|use bash|use the shell|take the calculator|with your calculator} {and work out|to compute|to calculate|to find|for} $sum",
    "{if I take|when I take|suppose I have|let's say|take} $sum{, what is it|, what do I get|, how much is it|, what comes out}",
)
EXPRESSIONS = (
    (
        9,
        "$a + $b",
        "{$a + $b|$a+$b|$a plus $b|$a and $b {added|added up|summed|together|put together}|the sum of $a and $b|the total of $a and $b|$a added to $b|$a increased by $b|$a, and $b on top}",
    ),
    (
        9,
        "$a - $b",
        "{$a - $b|$a-$b|$a minus $b|$a less $b|the difference {of|between} $a and $b|$b {subtracted|taken|taken away|deducted} from $a|$a {reduced|decreased|lowered} by $b|$a take away $b|$a without $b}",
    ),
    (
        12,
        "$a * $b",
        "{$a * $b|$a*$b|$a x $b|$a times $b|$a multiplied {by|with} $b|the product of $a and $b|$a × $b|$a{x}$b|$a by $b, multiplied|$a lots of $b|$a groups of $b}",
    ),
    (
        9,
        "$a / $b",
        "{$a / $b|$a/$b|$a divided by $b|$a over $b|$a ÷ $b|the quotient of $a and $b|$a split {by|into|in} $b {parts|pieces|}|$a shared by $b|the ratio of $a to $b}",
    ),
    (
        5,
        "$a % $b",
        "{$a mod $b|$a modulo $b|$a % $b|the remainder {of|for} $a {divided by|by|over|/} $b|the remainder when {$a is divided by $b|dividing $a by $b}|what remains of $a after division by $b|the rest of $a divided by $b|the leftover of $a / $b}",
    ),
    (
        5,
        "$a ** $k",
        "{$a to the power of $k|$a^$k|$a ** $k|$a**$k|$a to the power $k|$a to the $k|$a raised to $k|$a raised to the power of $k|the $k{th|-th} power of $a|$a to the $k{th|-th} power|$a ^ $k}",
    ),
    (
        3,
        "$a ** 2",
        "{the square of $a|$a squared|$a square|$a to the second power|$a²|$a by itself}",
    ),
    (3, "$a ** 3", "{the cube of $a|$a cubed|$a to the third power|$a³|the third power of $a}"),
    (2, "$a ** 0.5", "{the square root of $a|the root of $a|sqrt $a|sqrt($a)|the sqrt of $a|√$a}"),
    (10, "$p * $b / 100", "$p{%| %| percent| per cent| pct} of $b"),
    (
        3,
        "$b * (100 + $p) / 100",
        "{$b plus $p{%| percent}|$b {increased|raised|up} by $p{%| percent}|$b with $p{%| percent} {tax|VAT|tip|interest|service} {added|on top}|$b {and|plus} {a |}$p{%| percent} {tip|tax|surcharge}}",
    ),
    (
        3,
        "$b * (100 - $p) / 100",
        "{$b minus $p{%| percent}|$p{%| percent} off $b|$b {reduced|lowered|down|cut} by $p{%| percent}|$b with {a |}$p{%| percent} {discount|off|rebate}|$b less $p{%| percent}}",
    ),
    (2, "$a / 2", "{half of $a|half $a|one half of $a|the half of $a|$a halved}"),
    (1, "$a / 3", "{a third of $a|one third of $a|the third part of $a}"),
    (1, "$a / 4", "{a quarter of $a|one quarter of $a|one fourth of $a}"),
    (1, "$a * 2", "{double $a|twice $a|two times $a|the double of $a|$a doubled}"),
    (1, "$a * 3", "{triple $a|three times $a|thrice $a|$a tripled}"),
    (1, "$a * 12", "{$a dozen|$a times a dozen}"),
    (
        6,
        "$a + $b + $c",
        "{$a + $b + $c|$a+$b+$c|$a plus $b plus $c|the sum of $a, $b and $c|the total of $a, $b and $c|$a, $b and $c {added up|together|summed}|$a and $b and $c}",
    ),
    (2, "$a + $b + $c + $d", "{$a + $b + $c + $d|$a+$b+$c+$d|the sum of $a, $b, $c and $d}"),
    (3, "$a - $b - $c", "{$a - $b - $c|$a-$b-$c|$a minus $b minus $c|$a less $b less $c}"),
    (3, "$a * $b * $c", "{$a * $b * $c|$a*$b*$c|$a x $b x $c|$a times $b times $c}"),
    (
        3,
        "$a * $b + $c",
        "{$a * $b + $c|$a*$b+$c|$a times $b plus $c|$a x $b + $c|$a times $b and $c more}",
    ),
    (2, "$a * $b - $c", "{$a * $b - $c|$a*$b-$c|$a times $b minus $c|$a x $b - $c}"),
    (2, "$a + $b * $c", "{$a + $b * $c|$a+$b*$c|$a plus $b times $c|$a + $b x $c}"),
    (2, "$a + $b - $c", "{$a + $b - $c|$a+$b-$c|$a plus $b minus $c}"),
    (
        3,
        "($a + $b) * $c",
        "{($a + $b) * $c|($a+$b)*$c|the sum of $a and $b{,|} times $c|($a plus $b) times $c}",
    ),
    (2, "($a - $b) * $c", "{($a - $b) * $c|($a-$b)*$c|($a minus $b) times $c}"),
    (2, "($a + $b) / $c", "{($a + $b) / $c|($a+$b)/$c|the sum of $a and $b{,|} divided by $c}"),
    (
        2,
        "($a + $b) / 2",
        "{the average of $a and $b|the mean of $a and $b|the middle between $a and $b}",
    ),
    (2, "($a + $b + $c) / 3", "{the average of $a, $b and $c|the mean of $a, $b and $c}"),
)
STORIES = (
    (
        "$a * $b",
        "{I {buy|bought|need|sold|want|ordered}|we {buy|bought|need|sold|ordered}|$person {bought|sold|needs}} $a $nouns {at|for|costing|that cost|at a price of} $b[ $coins] {each|apiece|per piece|a piece}{, what do I pay|, how much is that|, what's the total|: total|. What does that cost|, what does it come to|. How much altogether}",
    ),
    (
        "$a * $b",
        "{what|how much} {do|would|will} $a $nouns {cost|come to|be} {at|for|if one costs|when each costs} $b[ $coins][ each| apiece]",
    ),
    (
        "$a * $b",
        "{$a|I have $a|there are $a|we have $a} {boxes|bags|rows|crates|packs|shelves|bottles|pages|trays|teams} {with|of|holding} $b $nouns{ each|, each| in each|}{, how many $nouns|, how many in all|: total|. How many altogether|, how many are there in total|, how many is that}",
    ),
    (
        "$a * $b",
        "{$b[ $coins] {a|per|every|each} {day|week|month|hour|year}{ for|,| over| during} $a {days|weeks|months|hours|years}}{, how much is that|: how much|, what's the sum|. Total|, what does it make}",
    ),
    (
        "$a - $b",
        "{I had|there were|we had|we started with|I have|$person had} $a $things{ and|, then| and then|, but} {spent|lost|gave away|used|sold|paid|dropped|returned} $b{, how many are left|, what is left|, what remains|. How much is left|, how many remain|, what do I have now}",
    ),
    (
        "$a - $b",
        "{how much|how many} {more|larger|bigger|longer|further} is $a than $b",
    ),
    (
        "$a + $b",
        "{I have|there are|we own|$person has} $a $things{ and|, then I|, and} {get|find|buy|receive|add|earn} $b more{, how many are there|, how many is that|, what's the total|. How many now|, how many in all}",
    ),
    (
        "$a + $b",
        "{$a[ $coins] for {the|a|my} $noun {and|plus} $b for {the|a|my} $other}{, how much together|, total|: total|, what did I spend|. What's the sum|, what do I pay in all}",
    ),
    (
        "$a + $b + $c",
        "{I spent|I paid|we collected|add up|I drove|I ran|we counted} $a, $b and $c[ $coins]{, how much in all|, total|, what's the sum|. How much together|, what is that together}",
    ),
    (
        "$a / $b",
        "{split|share|divide|spread} $a[ $things] {among|between|over|across|by|equally among} $b {people|friends|days|children|of us|boxes|teams|months|weeks}[{, how much each|, what does each get|: how many each}]",
    ),
    (
        "$a / $b",
        "{$a $things {for|among|shared by|between} $b {people|friends|days|children|teams|months}}{, how many each|, what does each get|, how much is that each|: share|. How many for each}",
    ),
    ("$a / $b", "how {often|many times} {does|will|would} $b {go into|fit into|fit in} $a"),
)
DOWN = "{how many $small {are there |are |}in $count|$count in $small|{turn|convert|express} $count {to|into|in} $small|$count is how many $small|how many $small {make|are|do} $count[ make]|number of $small in $count}"
UP = "{how many $large {are|is|make} $a $small|$a $small in $large|{turn|convert|express} $a $small {to|into|in} $large|$a $small is how many $large}"
